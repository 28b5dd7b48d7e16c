/* A Llama's forward and backward pass over a chunk of documents, for one thread. Matrix products come from the BLAS whose sgemm the caller hands over.
   Linear layers see the chunk as one matrix; attention and positions see each document by itself. */
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef void (*gemm_t)(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t, float, float *, int64_t);

enum { D = 128, H = 4, KV = 2, HD = 32, F = 256, V = 512, L = 4, QKV = (H + 2 * KV) * HD, Q = H * HD, BLOCK = 64, MAXT = 1024 };
enum { N1 = 0, WQKV = D, WO = WQKV + QKV * D, N2 = WO + D * Q, WGU = N2 + D, WD = WGU + 2 * F * D, LAYER = WD + D * F };
enum { EMB = 0, LAYERS = V * D, NORM = LAYERS + L * LAYER, HEAD = NORM + D, TOTAL = HEAD + V * D };

int parameters(void) { return TOTAL; }

static gemm_t sgemm;
static float cosines[MAXT][HD / 2], sines[MAXT][HD / 2];

void prepare(gemm_t gemm, double theta) {
  sgemm = gemm;
  for (int p = 0; p < MAXT; p++)
    for (int i = 0; i < HD / 2; i++) {
      double angle = p * pow(theta, -2.0 * i / HD);
      cosines[p][i] = (float)cos(angle);
      sines[p][i] = (float)sin(angle);
    }
}

/* y[n,o] = x[n,i] w[o,i]^T */
static void linear(int n, int o, int i, const float *x, const float *w, float *y) { sgemm(101, 111, 112, n, o, i, 1, x, i, w, i, 0, y, o); }
/* dx[n,i] (+)= dy[n,o] w[o,i] */
static void linear_dx(int n, int o, int i, const float *dy, const float *w, float *dx) { sgemm(101, 111, 111, n, i, o, 1, dy, o, w, i, 0, dx, i); }
/* dw[o,i] += dy[n,o]^T x[n,i] */
static void linear_dw(int n, int o, int i, const float *dy, const float *x, float *dw) { sgemm(101, 112, 111, o, i, n, 1, dy, o, x, i, 1, dw, i); }

static void rms(int n, const float *x, const float *w, float *y, float *r) {
  for (int t = 0; t < n; t++, x += D, y += D) {
    float s = 0;
    for (int i = 0; i < D; i++) s += x[i] * x[i];
    float k = r[t] = 1 / sqrtf(s / D + 1e-5f);
    for (int i = 0; i < D; i++) y[i] = x[i] * k * w[i];
  }
}

/* dx += the gradient through the norm; dw += its weight's. */
static void rms_back(int n, const float *x, const float *w, const float *r, const float *dy, float *dx, float *dw) {
  for (int t = 0; t < n; t++, x += D, dy += D, dx += D) {
    float dot = 0, k = r[t];
    for (int i = 0; i < D; i++) dot += dy[i] * w[i] * x[i];
    float c = dot * k * k * k / D;
    for (int i = 0; i < D; i++) {
      dx[i] += dy[i] * w[i] * k - x[i] * c;
      dw[i] += dy[i] * x[i] * k;
    }
  }
}

/* Turns the query and key heads of a row by its position; sign -1 turns back. */
static void turn(int n, float *qkv, const int32_t *pos, float sign) {
  for (int t = 0; t < n; t++, qkv += QKV) {
    const float *c = cosines[pos[t]], *s = sines[pos[t]];
    for (int h = 0; h < H + KV; h++) {
      float *x = qkv + h * HD;
      for (int i = 0; i < HD / 2; i++) {
        float a = x[i], b = x[i + HD / 2], z = s[i] * sign;
        x[i] = a * c[i] - b * z;
        x[i + HD / 2] = b * c[i] + a * z;
      }
    }
  }
}

static void scores(const float *qkv, int from, int row, int rows, int h, float *s) {
  const float *q = qkv + (int64_t)(from + row) * QKV + h * HD, *k = qkv + (int64_t)from * QKV + Q + (h / (H / KV)) * HD;
  sgemm(101, 111, 112, rows, row + rows, HD, 0.17677669529663687f, q, QKV, k, QKV, 0, s, MAXT);
}

static void attend(const float *qkv, int from, int len, float *out, float *lse, float *s) {
  for (int h = 0; h < H; h++) {
    const float *v = qkv + (int64_t)from * QKV + Q + KV * HD + (h / (H / KV)) * HD;
    for (int row = 0; row < len; row += BLOCK) {
      int rows = len - row < BLOCK ? len - row : BLOCK, keys = row + rows;
      scores(qkv, from, row, rows, h, s);
      for (int r = 0; r < rows; r++) {
        float *x = s + (int64_t)r * MAXT, m = -1e30f, sum = 0;
        int seen = row + r + 1;
        for (int j = 0; j < seen; j++) m = x[j] > m ? x[j] : m;
        for (int j = 0; j < seen; j++) { x[j] = expf(x[j] - m); sum += x[j]; }
        float k = 1 / sum;
        for (int j = 0; j < seen; j++) x[j] *= k;
        for (int j = seen; j < keys; j++) x[j] = 0;
        lse[(int64_t)(from + row + r) * H + h] = m + logf(sum);
      }
      sgemm(101, 111, 111, rows, HD, keys, 1, s, MAXT, v, QKV, 0, out + (int64_t)(from + row) * Q + h * HD, Q);
    }
  }
}

static void attend_back(const float *qkv, int from, int len, const float *out, const float *lse, const float *dout, float *dqkv, float *s, float *ds) {
  for (int h = 0; h < H; h++) {
    int g = h / (H / KV);
    const float *base = qkv + (int64_t)from * QKV, *k = base + Q + g * HD, *v = k + KV * HD;
    float *dbase = dqkv + (int64_t)from * QKV, *dk = dbase + Q + g * HD, *dv = dk + KV * HD;
    for (int row = 0; row < len; row += BLOCK) {
      int rows = len - row < BLOCK ? len - row : BLOCK, keys = row + rows;
      int64_t at = from + row;
      const float *go = dout + at * Q + h * HD, *o = out + at * Q + h * HD;
      scores(qkv, from, row, rows, h, s);
      sgemm(101, 111, 112, rows, keys, HD, 1, go, Q, v, QKV, 0, ds, MAXT);
      for (int r = 0; r < rows; r++) {
        float *x = s + (int64_t)r * MAXT, *y = ds + (int64_t)r * MAXT, delta = 0, z = lse[(at + r) * H + h];
        int seen = row + r + 1;
        for (int i = 0; i < HD; i++) delta += go[(int64_t)r * Q + i] * o[(int64_t)r * Q + i];
        for (int j = 0; j < seen; j++) {
          x[j] = expf(x[j] - z);
          y[j] = x[j] * (y[j] - delta) * 0.17677669529663687f;
        }
        for (int j = seen; j < keys; j++) x[j] = y[j] = 0;
      }
      sgemm(101, 112, 111, keys, HD, rows, 1, s, MAXT, go, Q, 1, dv, QKV);
      sgemm(101, 111, 111, rows, HD, keys, 1, ds, MAXT, k, QKV, 0, dqkv + at * QKV + h * HD, QKV);
      sgemm(101, 112, 111, keys, HD, rows, 1, ds, MAXT, qkv + at * QKV + h * HD, QKV, 1, dk, QKV);
    }
  }
}

/* Floats of working memory for n tokens. */
int64_t working(int64_t n) { return n * (L * (4 * D + 2 + QKV + Q + H + 3 * F) + 2 * D + 1 + V + 2 * D + QKV + Q + 4 * F) + 2 * BLOCK * MAXT; }

/* Sum over tokens of weight x negative log-probability. logp and best (the likeliest token) per position may be null; so may grads, for no backward pass. */
double pass(const float *p, float *grads, int n, const int32_t *token, const int32_t *target, const float *weight, const int32_t *pos, int segments,
            const int32_t *from, const int32_t *len, float *w, float *logp, int32_t *best) {
  struct { float *x, *n1, *r1, *qkv, *att, *lse, *mid, *n2, *r2, *gu, *h; } a[L];
#define TAKE(count) (w += (int64_t)n * (count), w - (int64_t)n * (count))
  float *s = w, *ds = w + BLOCK * MAXT;
  w += 2 * BLOCK * MAXT;
  for (int l = 0; l < L; l++) {
    a[l].x = TAKE(D); a[l].n1 = TAKE(D); a[l].r1 = TAKE(1); a[l].qkv = TAKE(QKV); a[l].att = TAKE(Q); a[l].lse = TAKE(H);
    a[l].mid = TAKE(D); a[l].n2 = TAKE(D); a[l].r2 = TAKE(1); a[l].gu = TAKE(2 * F); a[l].h = TAKE(F);
  }
  float *last = TAKE(D), *normed = TAKE(D), *r = TAKE(1), *logits = TAKE(V), *dx = TAKE(D), *dn = TAKE(D), *dqkv = TAKE(QKV), *datt = TAKE(Q), *dgu = TAKE(2 * F), *dh = TAKE(F);
  for (int t = 0; t < n; t++) memcpy(a[0].x + (int64_t)t * D, p + EMB + token[t] * D, D * sizeof(float));
  for (int l = 0; l < L; l++) {
    const float *q = p + LAYERS + (int64_t)l * LAYER;
    rms(n, a[l].x, q + N1, a[l].n1, a[l].r1);
    linear(n, QKV, D, a[l].n1, q + WQKV, a[l].qkv);
    turn(n, a[l].qkv, pos, 1);
    for (int i = 0; i < segments; i++) attend(a[l].qkv, from[i], len[i], a[l].att, a[l].lse, s);
    linear(n, D, Q, a[l].att, q + WO, a[l].mid);
    for (int64_t i = 0; i < (int64_t)n * D; i++) a[l].mid[i] += a[l].x[i];
    rms(n, a[l].mid, q + N2, a[l].n2, a[l].r2);
    linear(n, 2 * F, D, a[l].n2, q + WGU, a[l].gu);
    for (int t = 0; t < n; t++) {
      const float *g = a[l].gu + (int64_t)t * 2 * F, *u = g + F;
      float *h = a[l].h + (int64_t)t * F;
      for (int i = 0; i < F; i++) h[i] = g[i] / (1 + expf(-g[i])) * u[i];
    }
    float *next = l + 1 < L ? a[l + 1].x : last;
    linear(n, D, F, a[l].h, q + WD, next);
    for (int64_t i = 0; i < (int64_t)n * D; i++) next[i] += a[l].mid[i];
  }
  rms(n, last, p + NORM, normed, r);
  linear(n, V, D, normed, p + HEAD, logits);
  double loss = 0;
  for (int t = 0; t < n; t++) {
    float *x = logits + (int64_t)t * V, m = x[0], sum = 0;
    int top = 0;
    for (int i = 1; i < V; i++) if (x[i] > m) { m = x[i]; top = i; }
    float mine = x[target[t]] - m;
    for (int i = 0; i < V; i++) { x[i] = expf(x[i] - m); sum += x[i]; }
    float lp = mine - logf(sum), k = weight[t] / sum;
    loss -= (double)weight[t] * lp;
    if (logp) logp[t] = lp;
    if (best) best[t] = top;
    for (int i = 0; i < V; i++) x[i] *= k;
    x[target[t]] -= weight[t];
  }
  if (!grads) return loss;
  linear_dw(n, V, D, logits, normed, grads + HEAD);
  linear_dx(n, V, D, logits, p + HEAD, dn);
  memset(dx, 0, (size_t)n * D * sizeof(float));
  rms_back(n, last, p + NORM, r, dn, dx, grads + NORM);
  for (int l = L - 1; l >= 0; l--) {
    const float *q = p + LAYERS + (int64_t)l * LAYER;
    float *d = grads + LAYERS + (int64_t)l * LAYER;
    linear_dw(n, D, F, dx, a[l].h, d + WD);
    linear_dx(n, D, F, dx, q + WD, dh);
    for (int t = 0; t < n; t++) {
      const float *g = a[l].gu + (int64_t)t * 2 * F, *u = g + F, *y = dh + (int64_t)t * F;
      float *dg = dgu + (int64_t)t * 2 * F, *du = dg + F;
      for (int i = 0; i < F; i++) {
        float e = 1 / (1 + expf(-g[i]));
        du[i] = y[i] * g[i] * e;
        dg[i] = y[i] * u[i] * e * (1 + g[i] * (1 - e));
      }
    }
    linear_dw(n, 2 * F, D, dgu, a[l].n2, d + WGU);
    linear_dx(n, 2 * F, D, dgu, q + WGU, dn);
    rms_back(n, a[l].mid, q + N2, a[l].r2, dn, dx, d + N2);
    linear_dw(n, D, Q, dx, a[l].att, d + WO);
    linear_dx(n, D, Q, dx, q + WO, datt);
    memset(dqkv, 0, (size_t)n * QKV * sizeof(float));
    for (int i = 0; i < segments; i++) attend_back(a[l].qkv, from[i], len[i], a[l].att, a[l].lse, datt, dqkv, s, ds);
    turn(n, dqkv, pos, -1);
    linear_dw(n, QKV, D, dqkv, a[l].n1, d + WQKV);
    linear_dx(n, QKV, D, dqkv, q + WQKV, dn);
    rms_back(n, a[l].x, q + N1, a[l].r1, dn, dx, d + N1);
  }
  for (int t = 0; t < n; t++)
    for (int i = 0; i < D; i++) grads[EMB + token[t] * D + i] += dx[(int64_t)t * D + i];
  return loss;
}
