import { ModelReference } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { NoReference } from "./NoReference.ts"
import type { ReferenceRequest } from "./referenceRequest.ts"

const Output = Schema.fromJsonString(
  Schema.Union([
    Schema.Struct({ not_applicable: Schema.String.check(Schema.isPattern(/^[a-z_]{1,40}$/u)) }),
    Schema.Struct({
      logprobs: Schema.Array(Schema.Array(Schema.Finite)),
      continuations: Schema.Array(Schema.Array(Schema.Int)),
      transformers: Schema.String,
      torch: Schema.String
    })
  ])
)
const decodeOutput = Schema.decodeUnknownEffect(Output)
const decodeReference = Schema.decodeUnknownEffect(ModelReference)

const unreadable = () => new NoReference({ code: null, message: "The program printed something other than a reference." })

/** The reference that the program printed for a request, as the last line that is an object. Other lines are of its libraries. */
export const readReference = Effect.fnUntraced(function* (request: ReferenceRequest, printed: string): Effect.fn.Return<ModelReference, NoReference> {
  const line = printed.split("\n").findLast((each) => each.startsWith("{")) ?? ""
  const output = yield* Effect.mapError(decodeOutput(line), unreadable)
  if ("not_applicable" in output) return yield* new NoReference({ code: output.not_applicable, message: `There is no reference: ${output.not_applicable}.` })
  const { continuations, logprobs, torch, transformers } = output
  return yield* Effect.mapError(
    decodeReference({
      sequences: request.sequences.map((ids, index) => ({ ids, logprobs: logprobs[index] })),
      drawn: request.drawn,
      continuations: continuations.map((ids, index) => ({ prompt: request.prompts[index], ids })),
      transformers,
      torch
    }),
    unreadable
  )
})
