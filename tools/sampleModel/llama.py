"""The C kernel behind numpy arrays: loss, gradients, log-probabilities."""

import ctypes
import glob
import os
import subprocess
import threading

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
D, H, KV, HD, F, V, L, MAXT, THETA = 128, 4, 2, 32, 256, 512, 4, 1024, 10000.0

LAYOUT = [("model.embed_tokens.weight", (V, D))]
for _layer in range(L):
    _p = f"model.layers.{_layer}."
    LAYOUT += [
        (_p + "input_layernorm.weight", (D,)),
        (_p + "self_attn.q_proj.weight", (H * HD, D)),
        (_p + "self_attn.k_proj.weight", (KV * HD, D)),
        (_p + "self_attn.v_proj.weight", (KV * HD, D)),
        (_p + "self_attn.o_proj.weight", (D, H * HD)),
        (_p + "post_attention_layernorm.weight", (D,)),
        (_p + "mlp.gate_proj.weight", (F, D)),
        (_p + "mlp.up_proj.weight", (F, D)),
        (_p + "mlp.down_proj.weight", (D, F)),
    ]
LAYOUT += [("model.norm.weight", (D,)), ("lm_head.weight", (V, D))]
SIZE = sum(int(np.prod(shape)) for _, shape in LAYOUT)


def views(flat):
    """The tensors by name, as views into one flat array."""
    out, at = {}, 0
    for name, shape in LAYOUT:
        count = int(np.prod(shape))
        out[name] = flat[at : at + count].reshape(shape)
        at += count
    return out


def _load():
    built = os.environ.get("SAMPLE_MODEL_BUILD", os.path.join(HERE, ".build"))
    os.makedirs(built, exist_ok=True)
    target = os.path.join(built, "llama.so")
    source = os.path.join(HERE, "llama.c")
    if not os.path.exists(target) or os.path.getmtime(target) < os.path.getmtime(source):
        subprocess.run(["cc", "-Ofast", "-march=native", "-fPIC", "-shared", "-o", target, source, "-lm"], check=True)
    lib = ctypes.CDLL(target)
    blas = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(np.__file__), "..", "numpy.libs", "libscipy_openblas64_*.so"))[0])
    blas.scipy_openblas_set_num_threads64_(1)
    lib.prepare.argtypes = [ctypes.c_void_p, ctypes.c_double]
    lib.prepare(ctypes.cast(blas.scipy_cblas_sgemm64_, ctypes.c_void_p), THETA)
    lib.working.restype, lib.working.argtypes = ctypes.c_int64, [ctypes.c_int64]
    lib.pass_ = getattr(lib, "pass")
    lib.pass_.restype = ctypes.c_double
    p, i = ctypes.c_void_p, ctypes.c_int
    lib.pass_.argtypes = [p, p, i, p, p, p, p, i, p, p, p, p, p]
    assert lib.parameters() == SIZE
    return lib


lib = _load()
_local = threading.local()


class Chunk:
    """Documents side by side: ids, what follows each, and how much it counts."""

    def __init__(self, documents):
        """documents: pairs of ids and of weights, one for each id; the weight of an id counts where it is the target."""
        self.token = np.concatenate([ids[:-1] for ids, _ in documents]).astype(np.int32)
        self.target = np.concatenate([ids[1:] for ids, _ in documents]).astype(np.int32)
        self.weight = np.concatenate([w[1:] for _, w in documents]).astype(np.float32)
        self.length = np.array([len(ids) - 1 for ids, _ in documents], np.int32)
        self.start = np.concatenate([[0], np.cumsum(self.length)[:-1]]).astype(np.int32)
        self.position = np.concatenate([np.arange(n) for n in self.length]).astype(np.int32)


def run(params, chunk, grads=None, logp=None, best=None):
    n = len(chunk.token)
    need = lib.working(n)
    work = getattr(_local, "work", None)
    if work is None or len(work) < need:
        work = _local.work = np.empty(need, np.float32)
    at = lambda a: None if a is None else a.ctypes.data  # noqa: E731
    return lib.pass_(
        at(params), at(grads), n, at(chunk.token), at(chunk.target), at(chunk.weight), at(chunk.position),
        len(chunk.length), at(chunk.start), at(chunk.length), at(work), at(logp), at(best),
    )
