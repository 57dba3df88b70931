"""One GPU of a vLLM deployment: the checkpoint's geometry, the resolved launch and the release."""

from dataclasses import dataclass

from glm_kvplan.engines.vllm.deployment import Deployment
from glm_kvplan.engines.vllm.profile import EngineProfile
from glm_kvplan.model.geometry import Geometry


@dataclass(frozen=True, slots=True)
class Rank:
    """What every price, block and tensor of a GPU follows from. All GPUs of a deployment are alike."""

    geometry: Geometry
    deployment: Deployment
    profile: EngineProfile

    @property
    def state_layers(self) -> int:
        """KDA layers."""
        return len(self.geometry.linear_attention_layers)

    @property
    def token_layers(self) -> int:
        """Layers with latent rows, index keys and a tail: the checkpoint's, and the MTP layer where it drafts.

        The MTP layer is one, however many tokens it drafts: it runs once for each.
        """
        return len(self.geometry.full_attention_layers) + self.deployment.draft_layers
