"""Fields of Kubernetes' API: python .ci/kubernetes_api.py GIT_DIR > api_fields.txt

`tests/unit/kubernetes` has the fields of one version; the fields within a field stand in parentheses. GIT_DIR is the
git directory of the public repository of the API's types. Templates of pods, labels and selectors are leaves; so are
types of other packages.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator

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


def fields_of(structs: Structs, folder: str, kind: str, above: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Each field of a struct: its name, and the fields within it as `in_line` writes them."""
    bare = re.sub(r"^(\*|\[\]|map\[[^\]]*\])+", "", kind)
    name = bare.split(".")[-1]
    home = next((one for one in (folder, "core/v1") if (one, name) in structs), None)
    if home is None or name in above or name in LEAVES or bare.startswith("metav1."):
        return
    for field, inner in structs[home, name]:
        if not field:
            yield from fields_of(structs, home, inner, (*above, name))
        elif above or field not in ("kind", "apiVersion", "metadata"):
            yield field, in_line(fields_of(structs, home, inner, (*above, name)))


def in_line(fields: Iterable[tuple[str, str]]) -> str:
    """Names with blanks between, the fields within a field in parentheses."""
    return " ".join(f"{name}({inner})" if inner else name for name, inner in fields)


def opened(text: str) -> Iterator[str]:
    """The parts of a text between blanks that are outside parentheses."""
    depth, part = 0, ""
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == " " and depth == 0:
            yield part
            part = ""
        else:
            part += letter
    if part:
        yield part


def main() -> None:
    """Print the kinds, a line for each field of their specs and statuses."""
    structs = structs_of(sys.argv[1])
    for folder, kinds in GROUPS.items():
        for kind in kinds:
            print(kind)
            for name, inner in fields_of(structs, folder, kind):
                print(f" {name}")
                for part in opened(inner):
                    print(f"  {part}")


if __name__ == "__main__":
    main()
