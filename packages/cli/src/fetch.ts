import { Commit, RepoName } from "@seatrial/domain"
import { Hub, manifestSha256, storedFiles } from "@seatrial/hub"
import { Config, Console, Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { CommandError } from "./CommandError.ts"
import { makeProgressLog } from "./progressLog.ts"

const failed = (code: string, text: string, exitCode = 1) => new CommandError({ message: `${code}: ${text}`, exitCode })

const distrust = "Deploy it again; if that fails too, distrust the hub, or a proxy before it."

/**
 * What the download Job runs: brings the files of a pinned commit into a folder and verifies each. Its last line says why it failed, as `<code>: <text>`; exit code 3
 * means that the bytes are not the commit's, where trying again does not help.
 */
export const fetchCommand = Command.make(
  "fetch",
  {
    repo: Flag.String("repo").pipe(Flag.withDescription("owner/name"), Flag.withSchema(RepoName)),
    commit: Flag.String("commit").pipe(Flag.withDescription("Full commit"), Flag.withSchema(Commit)),
    directory: Flag.String("directory").pipe(Flag.withDescription("Folder that the files appear in, whole or not at all")),
    manifest: Flag.String("manifest").pipe(
      Flag.withDescription("SHA-256 of the list of files that screening saw"),
      Flag.withSchema(Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u)))
    )
  },
  Effect.fn(
    function* ({ commit, directory, manifest, repo }) {
      const hub = yield* Hub
      const token = yield* Config.Redacted("HF_TOKEN").pipe(Config.option)
      const stored = yield* storedFiles(directory, repo, commit, manifest)
      const files = Option.isSome(stored) ? stored.value : (yield* hub.inspect({ repo, ref: commit }, token)).files
      if (manifestSha256(files) !== manifest)
        return yield* failed("weights_mismatch", `The hub lists other files for commit ${commit.slice(0, 7)} than it did at first. ${distrust}`, 3)
      const { onProgress, report } = yield* makeProgressLog
      yield* hub.fetch({ repo, commit, files, directory, token, onProgress })
      yield* report
      yield* Console.log(`verified ${files.length} files of ${repo} at ${commit}`)
    },
    Effect.scoped,
    Effect.catchTags({
      HubRefusal: ({ code, message }) => failed(code, message),
      HubUnavailable: ({ message }) => failed("hub_unavailable", message),
      StoreFull: ({ message }) => failed("weights_store_full", message),
      WeightsMismatch: ({ detail }) => failed("weights_mismatch", `${detail} ${distrust}`, 3)
    })
  )
).pipe(Command.withDescription("Downloads and verifies a model's files at a pinned commit; what the operator's download Jobs run."), Command.provide(Hub.layer))
