"""Fields of Kubernetes' API as an indented tree: python .ci/kubernetes_api.py GIT_DIR > api_fields.txt

`tests/unit/kubernetes` has the tree of one version. GIT_DIR is the git directory of the public repository of the API's
types. Templates of pods, labels and selectors are leaves; so are types of other packages.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

GROUPS = {
    "core/v1": ("Node", "Pod", "PersistentVolumeClaim", "PersistentVolume", "LimitRange", "ResourceQuota", "Namespace"),
    "apps/v1": ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"),
    "batch/v1": ("Job", "CronJob"),
    "resource/v1": ("ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass"),
    "scheduling/v1": ("PriorityClass",),
    "storage/v1": ("StorageClass", "CSINode"),
    "policy/v1": ("PodDisruptionBudget",),
    "node/v1": ("RuntimeClass",),
}
"""Kinds that have a part in scheduling, by the folder of their types."""
LEAVES = ("PodTemplateSpec", "ObjectMeta", "LabelSelector")
STRUCT = re.compile(r"^type (\w+) struct \{(.*?)^\}", re.M | re.S)
FIELD = re.compile(r"^\s*(?:\w+\s+)?(\S+)\s+`[^`]*json:\"([^\"]*)\"", re.M)
Structs = dict[tuple[str, str], list[tuple[str, str]]]


def structs_of(git_dir: str) -> Structs:
    """Names and types of the fields of each struct, by folder and name; an embedded struct has an empty name."""
    found: Structs = {}
    for folder in GROUPS:
        command = ["git", "--git-dir", git_dir, "show", f"HEAD:{folder}/types.go"]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for name, body in STRUCT.findall(text):
            found[folder, name] = [(json.split(",")[0], kind) for kind, json in FIELD.findall(body)]
    return found


def tree(structs: Structs, folder: str, kind: str, above: tuple[str, ...] = ()) -> Iterator[tuple[int, str]]:
    """Depth and name of each field of a struct and of the structs within it."""
    bare = re.sub(r"^(\*|\[\]|map\[[^\]]*\])+", "", kind)
    name = bare.split(".")[-1]
    home = next((one for one in (folder, "core/v1") if (one, name) in structs), None)
    if home is None or name in above or name in LEAVES or bare.startswith("metav1."):
        return
    for field, inner in structs[home, name]:
        if not field:
            yield from tree(structs, home, inner, (*above, name))
        elif above or field not in ("kind", "apiVersion", "metadata"):
            yield 1, field
            yield from ((depth + 1, text) for depth, text in tree(structs, home, inner, (*above, name)))


def main() -> None:
    """Print the kinds with their fields."""
    structs = structs_of(sys.argv[1])
    for folder, kinds in GROUPS.items():
        for kind in kinds:
            print(kind)
            for depth, field in tree(structs, folder, kind):
                print(" " * depth + field)


if __name__ == "__main__":
    main()
