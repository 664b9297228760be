"""What bench/gpu_check asks of a machine and of processes on it; needs nothing but Python. As a program it says in four
lines which libraries there are, how much host memory, and the rates of populating and registering it."""
import ctypes
import glob
import mmap
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sysconfig
import time

LINE_MOST = 400 # characters of a result
TOUCHED = 32 << 30 # bytes of host memory that the first stage populates at most
HUGEPAGE, POPULATE_WRITE = 14, 23 # MADV_HUGEPAGE, MADV_POPULATE_WRITE


def libraries_find():
    """Folders of cuBLASLt, cuDNN and NCCL, and of their headers: the toolkit's, or Python packages'."""
    places = [sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]]
    torch = shutil.which("python3")
    if torch:
        asked = subprocess.run([torch, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
                               capture_output=True, text=True)
        places += asked.stdout.split()
    roots = ["/usr/local/cuda"] + [found for place in dict.fromkeys(places) for found in glob.glob(place + "/nvidia/*")]
    found = {}
    for key, pattern in (("cublaslt", "lib*/libcublasLt.so.*"), ("cudnn", "lib*/libcudnn.so.*"),
                         ("nccl", "lib*/libnccl.so.*"), ("cudart", "lib*/libcudart.so.1*"),
                         ("nccl_include", "include/nccl.h"), ("nvtx_include", "include/nvtx3/nvToolsExt.h"),
                         ("cudnn_include", "include/cudnn.h"), ("cublaslt_include", "include/cublasLt.h")):
        for root in roots:
            matches = glob.glob(os.path.join(root, pattern))
            if matches:
                found.setdefault(key, os.path.dirname(matches[0]).removesuffix("/nvtx3"))
    return found


def memory_available():
    """Bytes, as the kernel says."""
    line = re.search(r"MemAvailable:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())
    return int(line[1]) * 1024


def library_versions(libraries):
    """Of each library that is found, by its own function, and where it is."""
    found = []
    for key, pattern, function, by_pointer in (("cublaslt", "libcublasLt.so.*", "cublasLtGetVersion", False),
                                               ("cudnn", "libcudnn.so.*", "cudnnGetVersion", False),
                                               ("nccl", "libnccl.so.*", "ncclGetVersion", True)):
        paths = sorted(glob.glob(os.path.join(libraries.get(key, "/nowhere"), pattern)))
        try:
            library = ctypes.CDLL(paths[0])
            call = getattr(library, function)
            call.restype = ctypes.c_int if by_pointer else ctypes.c_size_t
            number = ctypes.c_int()
            value = call(ctypes.byref(number)) if by_pointer else call()
            found.append(f"{paths[0]} {number.value if by_pointer else value}")
        except (IndexError, OSError, AttributeError) as fault:
            found.append(f"no {key} ({fault})")
    return ", ".join(found)


def memory_touch(seconds, cudart):
    """GB/s of populating host memory with one thread, a GiB at a time; bytes; what registering the last of it says."""
    step, start, mapped = 1 << 30, time.monotonic(), []
    most = min(TOUCHED, memory_available() // 2)
    step = min(step, max(most, 1 << 24))
    while len(mapped) * step < most and time.monotonic() - start < seconds:
        memory = mmap.mmap(-1, step)
        try:
            memory.madvise(HUGEPAGE) # as AutoHete does
        except OSError:
            pass
        try:
            memory.madvise(POPULATE_WRITE)
        except OSError: # an older kernel
            for at in range(0, step, mmap.PAGESIZE):
                memory[at] = 1
        mapped.append(memory)
    took = time.monotonic() - start
    pinned = memory_register(mapped[-1], step, cudart)
    for memory in mapped:
        memory.close()
    return len(mapped) * step / took / 1e9, len(mapped) * step, pinned


def memory_register(memory, count, cudart):
    for path in [*sorted(glob.glob(os.path.join(cudart, "libcudart.so.1*"))), "libcudart.so.13"]:
        try:
            runtime = ctypes.CDLL(path)
            break
        except OSError:
            runtime = None
    if not runtime:
        return "registering not tried: no libcudart"
    view = ctypes.c_char.from_buffer(memory)
    address = ctypes.c_void_p(ctypes.addressof(view))
    runtime.cudaFree(None) # makes the context, which takes long
    start = time.monotonic()
    error = runtime.cudaHostRegister(address, ctypes.c_size_t(count), 0)
    took = time.monotonic() - start
    if error == 0:
        runtime.cudaHostUnregister(address)
    del view, address
    return f"registering {count / took / 1e9:.1f} GB/s" if error == 0 else f"registering: CUDA error {error}"


def ask(command, seconds):
    """What a command prints; "" when it fails or takes longer."""
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   start_new_session=True)
    except OSError:
        return ""
    try:
        said = process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        return ""
    finally:
        process_end(process)
    return said if process.returncode == 0 else ""


def gpu_ask(what):
    """What nvidia-smi says of the first GPU, without the unit; "" when it does not."""
    said = ask(["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader,nounits"], 20)
    return said.split("\n")[0].strip()


def worst_line(output):
    """What to show of a failure: the first line that speaks of one, else the last."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for pattern in (r"\berror: |^ERROR: |^autohete: |needed, .* available", r"^not ok|^\[  ERROR|FAILED: ",
                    r"^========= (Invalid|Error|Program hit|.*hazard)"):
        bad = [line for line in lines if re.search(pattern, line)]
        if bad:
            return bad[0][:LINE_MOST]
    return (lines or [""])[-1][:LINE_MOST]


def process_end(process):
    """A process that leads a session, and all of that session, whatever state they are in; one that the kernel does not
    let go of is left."""
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            session = int(pathlib.Path(path).read_text().rsplit(")", 1)[1].split()[3])
            if session == process.pid:
                os.kill(int(path.split("/")[2]), signal.SIGKILL)
        except (OSError, ValueError, IndexError):
            pass # it has ended meanwhile
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        print(f"process {process.pid} could not be ended", flush=True)


def stacks_of(process):
    """Where the threads of a process are that is about to be ended."""
    for debugger in ("gdb", "cuda-gdb", "/usr/local/cuda/bin/cuda-gdb"):
        said = ask([debugger, "-p", str(process), "-batch", "-ex", "thread apply all bt 20"], 20)
        if "#0" in said:
            return said
    lines = []
    for task in glob.glob(f"/proc/{process}/task/*"):
        for name in ("comm", "wchan", "syscall"):
            try:
                lines.append(f"{task}/{name}: {pathlib.Path(task, name).read_text().strip()}")
            except OSError:
                pass
    return "\n".join(lines) + "\n"


def main():
    libraries = libraries_find()
    print(library_versions(libraries), flush=True)
    before = memory_available()
    rate, touched, pinned = memory_touch(25, libraries.get("cudart", "/nowhere"))
    print(f"host memory available {before / 2**30:.1f} GiB, after touching {touched / 2**30:.1f} GiB and giving it "
          f"back {memory_available() / 2**30:.1f} GiB")
    print(f"populating {rate:.1f} GB/s with one thread\n{pinned}")


if __name__ == "__main__":
    main()
