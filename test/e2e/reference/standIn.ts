// Replaces a Python with torch and transformers in tests: `standIn -c PROGRAM FOLDER --memory-bytes=N --request=REQUEST`.
// Answers with what Transformers computed for `tiny-chat`, whichever files are in the folder. The drawn sequences of a commit
// without a stored result are computed by the sound reference engine.
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { ModelReference } from "@seatrial/domain"
import { ReferenceRequest } from "@seatrial/trial"
import { Schema } from "effect"
import { KvPool, KvSequence, kvShape } from "../../../packages/reference-engine/src/KvCache.ts"
import { Llama } from "../../../packages/reference-engine/src/Llama.ts"
import { readWeights } from "../../../packages/reference-engine/src/LlamaWeights.ts"
import { readModelConfig } from "../../../packages/reference-engine/src/ModelConfig.ts"
import { Safetensors } from "../../../packages/reference-engine/src/Safetensors.ts"
import { logprobsOf } from "../../../packages/reference-engine/src/Sampler.ts"

const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const decode = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, text: string): S["Type"] =>
  Schema.decodeUnknownSync(Schema.fromJsonString(schema))(text)

/** A function that gives the log-probability of each token of a sequence but the first. */
const scorer = (folder: string) => {
  const { config } = readModelConfig(folder)
  const llama = new Llama(config, readWeights(config, new Safetensors(folder)), config.maxLength)
  const pool = new KvPool(kvShape(config, 16, "float32"), 64)
  return (ids: ReadonlyArray<number>): ReadonlyArray<number> => {
    const cache = new KvSequence(pool)
    const values = ids.slice(0, -1).map((id, position) => {
      cache.reserve(position)
      const [logits = new Float32Array()] = llama.step([id], position, cache, true)
      return Math.round(logprobsOf(logits, 0).of(ids[position + 1] ?? 0) * 1e4) / 1e4
    })
    cache.release()
    return values
  }
}

const [, , , program = "", folder = "", , request = ""] = process.argv
if (!program.includes("import transformers")) throw new Error("this is not the program of references")
if (!existsSync(join(folder, "model.safetensors"))) throw new Error("the folder has no weights")
const { drawn, sequences } = decode(ReferenceRequest, request.slice("--request=".length))
const stored = decode(ModelReference, readFileSync(pathOf("../../mutants/tiny-chat.reference.json"), "utf8"))
const score = scorer(pathOf("../../../packages/reference-engine/sample/tiny-chat"))
const logprobs = sequences.map((ids, index) => {
  const same = stored.sequences.find((sequence) => JSON.stringify(sequence.ids) === JSON.stringify(ids))
  if (same !== undefined) return same.logprobs
  if (index < sequences.length - drawn) throw new Error(`there is no result for ${ids.length} tokens from ${ids[0]} on`)
  return score(ids)
})
const { torch, transformers } = stored
process.stderr.write("a warning of a library\n")
process.stdout.write(`${JSON.stringify({ logprobs, continuations: stored.continuations.map(({ ids }) => ids), transformers, torch })}\n`)
