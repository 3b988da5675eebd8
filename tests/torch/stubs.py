"""Lets the CUDA build of torch start on a machine without CUDA, for tests on its CPU part.

    stubs.py SITE_PACKAGES

torch's libraries name fourteen CUDA libraries (3.5 GB as packages) that the CPU part never calls.
This writes libraries of those names with the functions that torch asks for into torch/lib, where
its RPATH looks first. Each function returns 100, cudaErrorNoDevice; those that return a text
return one. Symbol versions are the ones asked for: the dynamic loader checks them.

For tests only. Needs cc and binutils (readelf, nm), on x86-64 or 64-bit ARM.
"""

import collections
import glob
import os
import platform
import re
import subprocess
import sys
import tempfile

CUDA_LIBRARY = re.compile(r"lib(cu|nv|nccl)")
CUDA_FUNCTION = re.compile(
    r"_*(cuda|cu[A-Z]|cublas|cudnn|cufft|cufile|cupti|cusolver|cusparse|nccl|pnccl|nvjitlink|nvperf"
    r"|nvrtc|nvshmem|nvtx)",
    re.IGNORECASE,
)
# cudaGetErrorString and its like; cudaGetLastError returns a number.
TEXT_FUNCTION = re.compile(
    r"(?!cuda(GetLast|PeekAtLast)Error$).*Get.*(Error|Status)(String|Name)?$"
)
RETURNS = {
    "x86_64": {
        "number": "movl $100, %eax\n    ret",
        "text": "leaq message(%rip), %rax\n    ret",
    },
    "aarch64": {
        "number": "mov w0, #100\n    ret",
        "text": "adrp x0, message\n    add x0, x0, :lo12:message\n    ret",
    },
}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    if platform.machine() not in RETURNS:
        sys.exit(f"stubs.py: no stubs for {platform.machine()}")
    folder = os.path.join(sys.argv[1], "torch", "lib")
    for library in glob.glob(os.path.join(folder, "lib*.so.*")):
        if CUDA_LIBRARY.match(os.path.basename(library)):
            os.remove(library)  # of an earlier run
    wanted, functions = survey(glob.glob(os.path.join(folder, "*.so*")))
    for library in wanted:
        version, names = choose(library, functions)
        write_library(os.path.join(folder, library), library, version, names)
    print(f"{len(wanted)} stub libraries in {folder}")


def survey(libraries):
    """CUDA libraries that the given ones need and that are not among them, and the functions that
    nobody defines, by symbol version."""
    present = {os.path.basename(library) for library in libraries}
    needed, undefined, defined = set(), {}, set()
    for library in libraries:
        needed.update(re.findall(r"NEEDED.*\[(.*?)\]", run("readelf", "-d", library)))
        for line in run("nm", "-D", library).splitlines():
            kind, symbol = line.split()[-2:]
            name, _, version = symbol.partition("@")
            if kind == "U":
                undefined.setdefault(name, version.lstrip("@"))
            elif kind in "TWBDRVuiGS":
                defined.add(name)
    functions = collections.defaultdict(list)
    for name, version in sorted(undefined.items()):
        if name not in defined and CUDA_FUNCTION.match(name):
            functions[version].append(name)
    return sorted(filter(CUDA_LIBRARY.match, needed - present)), functions


def choose(library, functions):
    """The symbol version that a library has to define, if any, and its functions. Versions are
    called after the library; NCCL has none, so what has none is NCCL's."""
    if library in functions:
        return library, functions[library]
    if library.startswith("libnvshmem"):
        return "NVSHMEM", functions["NVSHMEM"]
    if library.startswith("libnccl"):
        return None, functions[""]
    return None, []


def write_library(path, soname, version, names):
    returns = RETURNS[platform.machine()]
    assembly = ['.section .note.GNU-stack,"",%progbits', ".text"]
    for name in names:
        body = returns["text" if TEXT_FUNCTION.match(name) else "number"]
        assembly.append(f".globl {name}\n.type {name},%function\n{name}:\n    {body}")
    assembly.append('.section .rodata\nmessage: .asciz "no CUDA here (stub library)"\n')
    with tempfile.TemporaryDirectory() as folder:
        source, script = os.path.join(folder, "stub.S"), os.path.join(folder, "stub.map")
        with open(source, "w", encoding="ascii") as file:
            file.write("\n".join(assembly))
        with open(script, "w", encoding="ascii") as file:
            file.write(f"{version or ''} {{ global: *; }};\n")
        linker = ["-nostdlib", f"-Wl,-soname,{soname}", f"-Wl,--version-script,{script}"]
        run("cc", "-shared", *linker, "-o", path, source)


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"stubs.py: {' '.join(words)} failed: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    main()
