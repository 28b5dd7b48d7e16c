import { spawn } from "node:child_process"
import { text } from "node:stream/consumers"
import { Effect } from "effect"
import { NoReference } from "./NoReference.ts"
import { readReference } from "./readReference.ts"
import { referencePath } from "./referenceProgram.ts"
import type { ReferenceRequest } from "./referenceRequest.ts"

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
    const child = spawn(python, [referencePath, folder, `--memory-bytes=${memoryBytes}`], { env: { PATH: process.env.PATH }, stdio: "pipe" })
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
export const computeReference = Effect.fn("computeReference")((source: ReferenceSource, request: ReferenceRequest) =>
  Effect.flatMap(runProgram(source, request), (printed) => readReference(request, printed))
)
