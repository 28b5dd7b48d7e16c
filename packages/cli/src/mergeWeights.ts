import { rm } from "node:fs/promises"
import { mergedAgreement, mergeFailure, mergeWeights, renderAgreement } from "@seatrial/trial"
import { Console, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { CommandError } from "./CommandError.ts"

const folder = (name: string, description: string) => Flag.String(name).pipe(Flag.withDescription(description))

/**
 * Creates the merged model that an adapter's fidelity is measured against, and checks it against a second computation.
 */
export const mergeWeightsCommand = Command.make(
  "merge-weights",
  {
    base: folder("base", "Folder with the base's files"),
    adapter: folder("adapter", "Folder with the adapter's files"),
    target: folder("target", "Folder to write; it must not exist"),
    replace: Flag.Boolean("replace").pipe(
      Flag.withDescription("Remove an existing target folder first, for example of an interrupted merge"),
      Flag.withDefault(false)
    )
  },
  Effect.fn(
    function* ({ replace, ...folders }) {
      if (replace) yield* Effect.promise(() => rm(folders.target, { recursive: true, force: true }))
      yield* mergeWeights(folders)
      const agreement = yield* mergedAgreement({ ...folders, child: folders.target })
      yield* Console.log(renderAgreement(agreement))
      const failure = mergeFailure(agreement)
      if (failure !== null) return yield* new CommandError({ message: `${failure.code}: ${failure.text}.`, exitCode: 3 })
    },
    Effect.catchTag("NotMergeable", ({ message }) => new CommandError({ message: `fidelity_not_run: ${message}` }))
  )
).pipe(
  Command.withShortDescription("Merges a LoRA adapter into its base's weights."),
  Command.withDescription(
    "Merges a LoRA adapter into its base's weights. It computes in single precision (for float32 weights in double precision), and rounds each value once to the type of the weight. Then it compares the result with a second computation in double precision. The merge needs a few megabytes of memory for models of any size."
  )
)
