import { spawn } from "node:child_process"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { ModelReference } from "@seatrial/domain"
import { Data, Effect, Schema } from "effect"
import type { ReferenceRequest } from "./referenceRequest.ts"

const program = fileURLToPath(new URL("../../reference/reference.py", import.meta.url))

/** Why there is no reference. `code`: the program's; null if the program failed, and then `message` says how. */
export class NoReference extends Data.TaggedError("NoReference")<{ readonly code: string | null; readonly message: string }> {}

const Output = Schema.fromJsonString(
  Schema.Union([
    Schema.Struct({ not_applicable: Schema.String }),
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

/** Settings of a computation. */
export interface ReferenceSource {
  /** The folder with the files of the commit. */
  readonly folder: string
  /** A Python interpreter that has torch, transformers and safetensors. */
  readonly python: string
  /** Memory for weights in bytes. Larger models are read from their files once for each pass. */
  readonly memoryBytes: number
}

/** The last lines that the program wrote about a failure. */
const mostShown = 2_000

/** Runs the program. Returns what it printed. */
const runProgram = ({ folder, memoryBytes, python }: ReferenceSource, request: ReferenceRequest) =>
  Effect.callback<string, NoReference>((resume) => {
    const fail = (message: string) => resume(Effect.fail(new NoReference({ code: null, message })))
    // The program gets no variable of this process: none of its secrets, and no path to other packages.
    const child = spawn(python, [program, folder, `--memory-bytes=${memoryBytes}`], { env: { PATH: process.env.PATH }, stdio: "pipe" })
    const outputs = Promise.all([text(child.stdout), text(child.stderr)])
    child.once("error", ({ message }) => fail(`${python} could not be started: ${message}`))
    child.once("close", (code, signal) =>
      outputs.then(
        ([out, err]) => (code === 0 ? resume(Effect.succeed(out)) : fail(`${python} ended with ${signal ?? code}: ${err.slice(-mostShown)}`)),
        (error: unknown) => fail(String(error))
      )
    )
    // If it ends early, its exit says why.
    child.stdin.on("error", () => undefined)
    child.stdin.end(JSON.stringify(request))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** Computes the reference of the model in a folder, with Hugging Face Transformers on the processors of this machine. */
export const computeReference = Effect.fn("computeReference")(function* (
  source: ReferenceSource,
  request: ReferenceRequest
): Effect.fn.Return<ModelReference, NoReference> {
  const unreadable = () => new NoReference({ code: null, message: "The program printed something other than a reference." })
  const output = yield* Effect.mapError(decodeOutput(yield* runProgram(source, request)), unreadable)
  if ("not_applicable" in output) return yield* new NoReference({ code: output.not_applicable, message: `There is no reference: ${output.not_applicable}.` })
  const { continuations, logprobs, torch, transformers } = output
  return yield* Effect.mapError(
    decodeReference({
      sequences: request.sequences.map((ids, index) => ({ ids, logprobs: logprobs[index] })),
      continuations: continuations.map((ids, index) => ({ prompt: request.prompts[index], ids })),
      transformers,
      torch
    }),
    unreadable
  )
})
