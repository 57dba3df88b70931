"""The page of `kvplan resolve` of a vLLM launch."""

from glm_kvplan.engines.resolved_flags import resolved_page

resolve_page = resolved_page
