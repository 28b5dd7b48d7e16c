import { createHash } from "node:crypto"
import { canonicalJson } from "@seatrial/domain"
import { Effect } from "effect"
import type { AdapterConfig } from "./adapterConfig.ts"
import type { AdapterTensor } from "./adapterTensors.ts"
import { Unreadable } from "./failures.ts"

/** Bytes per read. */
const pieceBytes = 8 * 2 ** 20
/**
 * Maximum number of reads for one adapter. In real files the tensors are in the order of their names, or in a few runs
 * of it.
 */
const maxPieces = 4_096

/** The scaling parameters of an adapter's tensors as one text. */
const scaling = ({ alpha, alphaPattern, rank, rankPattern, rslora, target }: AdapterConfig): string =>
  canonicalJson({
    r: rank,
    lora_alpha: alpha,
    use_rslora: rslora,
    rank_pattern: rankPattern,
    alpha_pattern: alphaPattern,
    target_modules: typeof target === "string" ? target : [...new Set(target)].sort()
  })

/** The reads that yield the tensors' bytes in the order of their names. */
const piecesOf = (tensors: ReadonlyArray<AdapterTensor>): ReadonlyArray<{ readonly from: number; readonly to: number }> => {
  const runs: Array<{ from: number; to: number }> = []
  for (const { from, to } of tensors) {
    if (to === from) continue
    const last = runs.at(-1)
    if (last !== undefined && last.to === from && to - last.from <= pieceBytes) last.to = to
    else for (let at = from; at < to; at += pieceBytes) runs.push({ from: at, to: Math.min(to, at + pieceBytes) })
  }
  return runs
}

/**
 * SHA-256 of an adapter's effect, independent of the file layout: name, type and shape of each tensor as a line
 * followed by its bytes, in the order of the names; then the canonical JSON of ranks, scales and targets. `read`
 * returns bytes after the header. Fails with `Unreadable` if it would take thousands of reads.
 */
export const hashAdapter = Effect.fnUntraced(function* <E>(
  config: AdapterConfig,
  tensors: ReadonlyArray<AdapterTensor>,
  read: (from: number, to: number) => Effect.Effect<Uint8Array, E>
) {
  const pieces = piecesOf(tensors)
  if (pieces.length > maxPieces) return yield* new Unreadable({ reason: "The adapter's tensors are stored in an order that takes too many reads." })
  const hash = createHash("sha256")
  let next = 0
  let piece = { from: 0, to: 0, bytes: new Uint8Array() }
  for (const { dtype, from, name, shape, to } of tensors) {
    hash.update(`${name}\n${dtype}\n${shape.join(",")}\n`)
    for (let at = from; at < to; ) {
      const wanted = pieces[next]
      if ((at < piece.from || at >= piece.to) && wanted !== undefined) {
        piece = { ...wanted, bytes: new Uint8Array(yield* read(wanted.from, wanted.to)) }
        next++
      }
      const end = Math.min(to, piece.to)
      if (at < piece.from || end <= at) return yield* Effect.die(new Error("a read that does not bring what it is for"))
      hash.update(piece.bytes.subarray(at - piece.from, end - piece.from))
      at = end
    }
  }
  const scales = yield* Effect.try({
    try: () => scaling(config),
    catch: () => new Unreadable({ reason: "The adapter's configuration has a name that is not a string." })
  })
  return hash.update(scales).digest("hex")
})
