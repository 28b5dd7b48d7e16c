import { makeRepository } from "@seatrial/local"
import { trainedFiles } from "@seatrial/reference-engine/sample"
import { Schema } from "effect"

const decodeObject = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Json)))

const decodeTokenizer = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.StructWithRest(Schema.Struct({ model: Schema.Record(Schema.String, Schema.Json) }), [Schema.Record(Schema.String, Schema.Json)]))
)

const first: Readonly<Record<string, Uint8Array>> = Object.fromEntries(trainedFiles("tiny-chat"))
const second: Readonly<Record<string, Uint8Array>> = Object.fromEntries(trainedFiles("tiny-chat-first"))
const { "model.safetensors": _, ...withoutWeights } = first

const config = (more: Readonly<Record<string, Schema.Json>>) => ({
  "config.json": JSON.stringify({ ...decodeObject(Buffer.from(first["config.json"] ?? []).toString()), ...more })
})

/** A changed tokenizer, padded with spaces to `bytes`. */
const tokenizer = (more: Readonly<Record<string, Schema.Json>>, bytes: number) => {
  const tokenizerJson = decodeTokenizer(Buffer.from(first["tokenizer.json"] ?? []).toString())
  return { "tokenizer.json": JSON.stringify({ ...tokenizerJson, model: { ...tokenizerJson.model, ...more } }).padEnd(bytes) }
}

/** A repository that can be served at the tag `good`. Every other tag has the fault that it names. `corrupted` is altered in transit. */
export const spoiltRepository = makeRepository({
  name: "test/spoilt",
  commits: [
    { title: "Good", tag: "good", files: first },
    { title: "Other weights", tag: "corrupted", files: second },
    // Longer than the part of a tokenizer that screening reads, so that only an engine detects the fault.
    { title: "A tokenizer that no engine reads", tag: "misfit", files: { ...first, ...tokenizer({ merges: [5] }, 9 * 1024 * 1024) } },
    { title: "Tensors that are not those of the configuration", tag: "contradicting", files: { ...first, ...config({ intermediate_size: 192 }) } },
    { title: "Good weights again", tag: "silent", files: { ...first, "README.md": "# An engine that never becomes ready\n" } },
    {
      title: "A configuration that names Python of the repository",
      tag: "remote-code",
      files: { ...first, ...config({ auto_map: { AutoModelForCausalLM: "modeling.Model" } }), "modeling.py": "raise RuntimeError\n" }
    },
    { title: "Pickled weights", tag: "pickled", files: { ...withoutWeights, "pytorch_model.bin": Buffer.from("PK\u0003\u0004 no weights\n") } }
  ]
})
