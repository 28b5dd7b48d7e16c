"""Muon for the matrices of the layers (Jordan et al. 2024, scaled as by Liu et al. 2025), Adam for everything else."""

import numpy as np

from llama import SIZE, views


def orthogonal(g):
    """The nearest matrix with orthonormal rows or columns, nearly: five Newton-Schulz steps."""
    turned = g.shape[0] > g.shape[1]
    x = g.T if turned else g
    x = x / (np.linalg.norm(x) + 1e-7)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.775 * a + 2.0315 * (a @ a)) @ x
    return x.T if turned else x


class Optimiser:
    def __init__(self):
        self.first = np.zeros(SIZE, np.float32)
        self.second = np.zeros(SIZE, np.float32)
        self.steps = 0

    def step(self, params, grads, rate, decay=0.02):
        self.steps += 1
        p, g, m, s = views(params), views(grads), views(self.first), views(self.second)
        for name in p:
            if name.startswith("model.layers.") and p[name].ndim == 2:
                m[name] *= 0.95
                m[name] += g[name]
                update = orthogonal(g[name] + 0.95 * m[name]) * (0.2 * max(p[name].shape) ** 0.5)
                p[name] *= 1 - rate * decay
            else:
                m[name] += 0.1 * (g[name] - m[name])
                s[name] += 0.05 * (g[name] ** 2 - s[name])
                update = m[name] / (1 - 0.9**self.steps) / (np.sqrt(s[name] / (1 - 0.95**self.steps)) + 1e-8)
            p[name] -= rate * update
