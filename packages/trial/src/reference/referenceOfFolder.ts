import { readFile } from "node:fs/promises"
import { join } from "node:path"
import type { ModelReference } from "@seatrial/domain"
import { Effect, Option, Schema, type Scope } from "effect"
import { readPinned } from "../suite/readPinned.ts"
import { computeReference, NoReference, type ReferenceSource } from "./computeReference.ts"
import { referenceRequest } from "./referenceRequest.ts"

const Positions = Schema.Struct({ max_position_embeddings: Schema.optionalKey(Schema.Int) })
const decodeConfig = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ ...Positions.fields, text_config: Schema.optionalKey(Positions) })))

/** The longest context of the model; infinite if the configuration does not have it. */
const contextOf = (config: string): number => {
  const fields = Option.getOrUndefined(decodeConfig(config))
  return fields?.max_position_embeddings ?? fields?.text_config?.max_position_embeddings ?? Number.POSITIVE_INFINITY
}

/** Computes the reference of the model in a folder, with the texts of this version of the suite. */
export const referenceOfFolder = Effect.fn("referenceOfFolder")(function* (
  source: ReferenceSource
): Effect.fn.Return<ModelReference, NoReference, Scope.Scope> {
  const read = (name: string) =>
    Effect.tryPromise({
      try: () => readFile(join(source.folder, name)),
      catch: () => new NoReference({ code: null, message: `${join(source.folder, name)} cannot be read.` })
    })
  const [config, file] = yield* Effect.all([read("config.json"), read("tokenizer.json")])
  const settings = yield* Effect.orElseSucceed(read("tokenizer_config.json"), () => Buffer.from("{}"))
  const { tokenizer } = yield* readPinned({ tokenizer: { file, config: settings.toString("utf8") }, template: null })
  if (tokenizer === null) return yield* new NoReference({ code: "no_tokenizer", message: "The tokenizer in tokenizer.json cannot be read." })
  return yield* computeReference(source, yield* referenceRequest(tokenizer, contextOf(config.toString("utf8"))))
}, Effect.scoped)
