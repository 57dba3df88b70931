"""The page of `kvplan resolve`."""

from glm_kvplan.engines.resolved_flags import resolved_page

resolve_page = resolved_page
