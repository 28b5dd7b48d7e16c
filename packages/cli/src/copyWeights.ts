import { copyWeights } from "@seatrial/hub"
import { Config, Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { CommandError } from "./CommandError.ts"
import { makeProgressLog } from "./progressLog.ts"
import { weightFlags } from "./weightFlags.ts"

const failed = (code: string, text: string, exitCode = 1) => new CommandError({ message: `${code}: ${text}`, exitCode })

/**
 * The copies that other pods use, as the operator writes them: Unix milliseconds, then prefixes of commits. If it is
 * missing, all copies may be in use.
 */
const inUseOf = (text: string) => {
  const [at = "", ...commits] = text.split(" ").filter((word) => word !== "")
  return { at: /^\d{1,15}$/.test(at) ? Number(at) : 0, commits }
}

/**
 * Runs first in an engine pod whose host class caches weights on its nodes. Copies a commit from the store to the node
 * and verifies it. On failure its last line is `<code>: <text>`. Exit code 3 means that a retry does not help.
 */
export const copyWeightsCommand = Command.make(
  "copy-weights",
  {
    ...weightFlags,
    from: Flag.String("from").pipe(Flag.withDescription("Folder of the weights store")),
    to: Flag.String("to").pipe(Flag.withDescription("Folder of the copies on the node")),
    verify: Flag.Literals("verify", ["recorded", "full"]).pipe(
      Flag.withDescription("`recorded`: check whether the files of an existing copy have changed since they were verified. `full`: verify all bytes"),
      Flag.withDefault("recorded")
    )
  },
  Effect.fn(
    function* ({ adapterCommit, adapterManifest, adapterRepo, commit, from, manifest, repo, to, verify }) {
      const usedByOthers = inUseOf(yield* Config.String("SEATRIAL_WEIGHTS_IN_USE").pipe(Config.withDefault("")))
      const { onProgress, report } = yield* makeProgressLog
      const adapter = Option.getOrNull(Option.all({ repo: adapterRepo, commit: adapterCommit, manifest: adapterManifest }))
      const wanted = [{ repo, commit, manifest }, ...(adapter === null ? [] : [adapter])]
      // The base and the adapter must not evict each other.
      const inUse = { ...usedByOthers, commits: [...usedByOthers.commits, ...wanted.map((each) => each.commit)] }
      for (const each of wanted) {
        const { copied, files } = yield* copyWeights({
          ...each,
          from,
          to,
          verify,
          inUse,
          onProgress,
          onRemoved: (removed) => Console.log(`removed ${removed.repo} at ${removed.commit}, unused since ${new Date(removed.unusedSince).toISOString()}`)
        })
        yield* report
        const what = `${each.repo} at ${each.commit}`
        yield* Console.log(copied === 0 ? `found ${files} verified files of ${what}` : `copied ${copied} bytes of ${what}: ${files} files verified`)
      }
    },
    Effect.scoped,
    Effect.catchTags({
      HubUnavailable: ({ message }) => failed("download_failed", message),
      StoreFull: ({ message }) => failed("weights_store_full", message),
      WeightsAbsent: ({ message }) => failed("weights_missing", message),
      WeightsMismatch: ({ detail }) => failed("weights_mismatch", detail, 3)
    })
  )
).pipe(
  Command.withShortDescription("Copies a model's files from the weights store to a node and verifies them."),
  Command.withDescription(
    "Copies a model's files at a pinned commit from the weights store to a folder of the node and verifies them. Engine pods run this command in an init container if their host class has a weightsCache. SEATRIAL_WEIGHTS_IN_USE lists the other commits that must stay on the node."
  )
)
