import { readFile } from "node:fs/promises"
import { join } from "node:path"
import type { ModelReference } from "@seatrial/domain"
import { Effect, type Scope } from "effect"
import { computeReference, type ReferenceSource } from "./computeReference.ts"
import { NoReference } from "./NoReference.ts"
import { requestOf } from "./referenceRequest.ts"

/** Computes the reference of the commit whose files are in a folder, with the texts of this version of the suite. */
export const referenceOfFolder = Effect.fn("referenceOfFolder")(function* (
  source: ReferenceSource,
  commit: string
): Effect.fn.Return<ModelReference, NoReference, Scope.Scope> {
  const read = (name: string) =>
    Effect.tryPromise({
      try: () => readFile(join(source.folder, name)),
      catch: () => new NoReference({ code: null, message: `${join(source.folder, name)} cannot be read.` })
    })
  const [config, file] = yield* Effect.all([read("config.json"), read("tokenizer.json")])
  const settings = yield* Effect.orElseSucceed(read("tokenizer_config.json"), () => Buffer.from("{}"))
  const request = yield* requestOf({ commit, config: config.toString("utf8"), tokenizer: file, tokenizerConfig: settings.toString("utf8") })
  return yield* computeReference(source, request)
}, Effect.scoped)
