import type { Commit } from "@seatrial/domain"
import { adapterContentHash, Hub, manifestSha256, RefusalAudience, storedFiles } from "@seatrial/hub"
import { Config, Console, Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { CommandError } from "./CommandError.ts"
import { logWaiting, makeProgressLog } from "./progressLog.ts"
import { weightFlags } from "./weightFlags.ts"

const failed = (code: string, text: string, exitCode = 1) => new CommandError({ message: `${code}: ${text}`, exitCode })

const Sha256 = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u))

const retryAdvice = "Deploy the model again. If that fails too, check the hub and any proxy in front of it."

/** A commit to download into a folder. */
interface Wanted {
  readonly repo: string
  readonly commit: Commit
  readonly directory: string
  readonly manifest: string
}

const audienceOf = (tokenSharedBy: Option.Option<string>): RefusalAudience =>
  Option.match(tokenSharedBy, {
    onNone: () => RefusalAudience.ApiCaller(),
    onSome: (organization) => RefusalAudience.AppliedObject({ organization })
  })

/**
 * Runs in download Jobs: downloads the files of a pinned commit into a folder and verifies each. On failure its last
 * line is `<code>: <text>`. Exit code 3 means that the bytes differ from the commit, so a retry does not help.
 */
export const fetchCommand = Command.make(
  "fetch",
  {
    ...weightFlags,
    directory: Flag.String("directory").pipe(Flag.withDescription("Folder for the files; it appears only when the download is complete")),
    adapterDirectory: Flag.String("adapter-directory").pipe(Flag.withDescription("Folder for the adapter's files"), Flag.optional),
    adapterHash: Flag.String("adapter-hash").pipe(
      Flag.withDescription("Hash of the adapter's tensors and scales that the screening recorded"),
      Flag.withSchema(Sha256),
      Flag.optional
    ),
    tokenSharedBy: Flag.String("token-shared-by").pipe(
      Flag.withDescription(
        "Slug of the organization that shares the hub token; only for a ModelDeployment applied with kubectl. Without this flag, the token belongs to the API caller"
      ),
      Flag.optional
    )
  },
  Effect.fn(
    function* ({ adapterCommit, adapterDirectory, adapterHash, adapterManifest, adapterRepo, commit, directory, manifest, repo }) {
      const hub = yield* Hub
      const token = yield* Config.Redacted("HF_TOKEN").pipe(Config.option)
      const { onProgress, report } = yield* makeProgressLog
      const bring = Effect.fnUntraced(function* (wanted: Wanted, base?: Commit) {
        const { commit, directory, manifest, repo } = wanted
        const stored = yield* storedFiles(directory, repo, commit, manifest)
        // Screening pinned the base of the adapter, and its files have already been downloaded. The base is not looked
        // up again.
        const listed = hub
          .inspect({ repo, ref: commit, base, hash: false, patience: "long" }, token)
          .pipe(logWaiting(`the model hub (HF_ENDPOINT) to list the files of ${repo} at ${commit.slice(0, 7)}`))
        const files = Option.isSome(stored) ? stored.value : (yield* listed).files
        if (manifestSha256(files) !== manifest)
          return yield* failed("weights_mismatch", `The hub now lists different files for commit ${commit.slice(0, 7)} than at screening. ${retryAdvice}`, 3)
        yield* hub.fetch({ repo, commit, files, directory, token, onProgress })
        yield* report
        yield* Console.log(`verified ${files.length} files of ${repo} at ${commit}`)
      })
      yield* bring({ repo, commit, directory, manifest })
      const adapter = Option.all({ repo: adapterRepo, commit: adapterCommit, directory: adapterDirectory, manifest: adapterManifest })
      if (Option.isNone(adapter)) return
      yield* bring(adapter.value, commit)
      if (Option.isSome(adapterHash) && (yield* adapterContentHash(adapter.value.directory)) !== adapterHash.value)
        return yield* failed(
          "weights_mismatch",
          `The adapter's tensors at commit ${adapter.value.commit.slice(0, 7)} differ from those at screening. ${retryAdvice}`,
          3
        )
    },
    Effect.scoped,
    (fetched, { tokenSharedBy }) =>
      Effect.catchTags(fetched, {
        HubRefusal: (refusal) => failed(refusal.code, refusal.textFor(audienceOf(tokenSharedBy)).message),
        HubUnavailable: ({ message }) => failed("hub_unavailable", message),
        StoreFull: ({ message }) => failed("weights_store_full", message),
        Unreadable: ({ reason }) => failed("weights_mismatch", reason, 3),
        WeightsMismatch: ({ detail }) => failed("weights_mismatch", `${detail} ${retryAdvice}`, 3)
      })
  )
).pipe(
  Command.withDescription("Downloads and verifies a model's files at a pinned commit. Download Jobs of the operator run this command."),
  Command.provide(Hub.layer)
)
