"""The option ``--quotas`` that comes nearest to quotas among Kubernetes' objects, as a notice about them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fastsim.foundation.option_texts import groups_text

Limits = Mapping[str, Mapping[str, int]]
"""Limits of each tenant, as the rules of a run have them."""


def nearest_quotas(kind: str, limits: Limits, honoured: str, lacking: Collection[str]) -> str:
    """The notice about objects of a kind: ``--quotas`` with these limits, and what no option honours."""
    text = groups_text({tenant: amounts for tenant, amounts in sorted(limits.items()) if amounts})
    option = f"--quotas '{text}' honours {honoured}" if text else ""
    without = f"no option honours {', '.join(sorted(lacking))}" if lacking else ""
    return "; ".join(filter(None, (kind, option, without)))
