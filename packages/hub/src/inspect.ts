import type { RepositoryFacts } from "@seatrial/domain"
import { Effect, Option, type Redacted, type Semaphore } from "effect"
import { collect } from "./contentHash.ts"
import type { FactsCache } from "./FactsCache.ts"
import { HubRefusal, HubUnavailable } from "./failures.ts"
import { connect } from "./HubConnection.ts"
import type { HubSettings } from "./HubSettings.ts"
import { licenseRefusal } from "./license.ts"
import { type Depth, readCommit, readFile } from "./readCommit.ts"
import { resolve } from "./resolve.ts"
import { disabled, isRepoName, noHubConnection, refusalOf, unknownRepository, unsupportedFormat } from "./screening.ts"

/** Largest configuration that is read again to show that the caller may. */
const maxProofBytes = 4 * 1024 * 1024

/** The service's `inspect`, as many at once as `reading` permits: one request for the commit and its files, then the small files and the weight files' headers, some at a time. */
export const inspect = (settings: HubSettings, cache: FactsCache, reading: Semaphore.Semaphore) =>
  Effect.fn("Hub.inspect")(function* (
    source: { readonly repo: string; readonly ref?: string | undefined },
    token: Option.Option<Redacted.Redacted<string>>,
    depth: Depth = "all"
  ) {
    const ref = source.ref ?? "main"
    const connection = connect(settings, token)
    const asked = { repo: source.repo, ref, hasToken: Option.isSome(token), commit: null }

    const read = Effect.gen(function* () {
      if (!isRepoName(source.repo)) return yield* unknownRepository(asked)
      const resolved = yield* resolve(connection, source.repo, source.ref).pipe(
        Effect.catchTags({
          HubAnswer: (answer) => refusalOf(answer, asked),
          Unreadable: ({ reason }) => unsupportedFormat(reason, null)
        })
      )
      const { commit, gated, license, repo } = resolved
      if (resolved.disabled) return yield* disabled(repo, commit)
      const refusal = licenseRefusal(license, settings, { repo, commit })
      if (refusal !== null) return yield* refusal
      if (gated && Option.isNone(token)) return yield* noHubConnection({ ...asked, repo, commit })

      return yield* Effect.gen(function* () {
        const known = yield* cache.find(repo, commit, depth === "all")
        if (known !== null) {
          // What others were shown is no reason to show it to this caller: where not everybody may read, they prove that they may.
          const proof = gated || resolved.private ? known.files.find(({ path }) => path === "config.json") : undefined
          if (proof !== undefined) yield* readFile(connection, resolved, proof, maxProofBytes, () => collect(proof.size))
          const facts: RepositoryFacts = { ...known, repo, ref, gated, license: license.name }
          return facts
        }
        const { facts, whole } = yield* readCommit(connection, resolved, ref, depth)
        yield* cache.keep(facts, whole)
        return facts
      }).pipe(
        Effect.catchTags({
          HubAnswer: (answer) => refusalOf(answer, { ...asked, repo, commit }),
          Unreadable: ({ reason }) => unsupportedFormat(reason, commit),
          UnsupportedArchitecture: ({ reason }) =>
            new HubRefusal({
              code: "unsupported_architecture",
              message: reason,
              remedy: "Name a repository of a decoder model for text in the layout of Transformers.",
              commit
            })
        })
      )
    }).pipe(reading.withPermit)

    if (depth === "all") return yield* read
    return yield* Effect.timeoutOrElse(read, {
      duration: settings.previewTimeout,
      orElse: () => Effect.fail(new HubUnavailable({ message: "The model hub takes too long to answer." }))
    })
  })
