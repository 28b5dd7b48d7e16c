import type { Commit, RepositoryFacts } from "@seatrial/domain"
import { Effect, Option, type Redacted, type Semaphore } from "effect"
import { adapterFacts, describeAdapter, hashOnHub, isAdapter, type OwnAdapter, readAdapter } from "./adapter.ts"
import { collect } from "./contentHash.ts"
import type { FactsCache } from "./FactsCache.ts"
import { type HubAnswer, HubRefusal, HubUnavailable, type Unreadable, type UnsupportedArchitecture } from "./failures.ts"
import { connect, type Patience } from "./HubConnection.ts"
import type { HubSettings } from "./HubSettings.ts"
import { licenseRefusal } from "./license.ts"
import { type Depth, readCommit, readFile } from "./readCommit.ts"
import { type ReadMemory, remembering } from "./remembering.ts"
import { listRoot, type Resolved, resolve } from "./resolve.ts"
import { disabled, isRepoName, noHubConnection, refusalOf, unknownRepository, unsupportedFormat } from "./screening.ts"

/** Largest configuration that is read again to show that the caller may. */
const maxProofBytes = 4 * 1024 * 1024

/** What of the hub is read. */
export interface InspectSource {
  readonly repo: string
  readonly ref?: string | undefined
  /** The commit of an adapter's base where it was pinned before; else it is found by what the adapter names. */
  readonly base?: Commit | undefined
  /** Whether an adapter's tensors are hashed where everything is read. Default true. */
  readonly hash?: boolean
  /** How long requests that fail in passing are sent again; see `connect`. Default `brief`. */
  readonly patience?: Patience
}

const nestedAdapter = (repo: string, commit: Commit) =>
  new HubRefusal({
    code: "unsupported_format",
    message: `${repo} is an adapter itself: adapters of adapters are not served.`,
    remedy: "Name a repository with the adapters merged into their base.",
    commit
  })

/** What is wrong with an adapter's base, told of the adapter. */
const ofBase = (adapter: { readonly repo: string; readonly commit: Commit; readonly own: OwnAdapter }, refusal: HubRefusal): HubRefusal =>
  new HubRefusal({
    code: refusal.code,
    message: `${describeAdapter(adapter.repo, adapter.own)}, its base. ${refusal.message}`,
    remedy: refusal.remedy,
    commit: adapter.commit
  })

const withHash = (facts: RepositoryFacts, content_hash: string): RepositoryFacts =>
  facts.adapter === undefined ? facts : { ...facts, adapter: { ...facts.adapter, content_hash } }

/** The service's `inspect`, as many at once as `reading` permits: one request for the commit and its files, then the small files and the weight files' headers, some at a time. */
export const inspect = (settings: HubSettings, cache: FactsCache, memory: ReadMemory, reading: Semaphore.Semaphore) =>
  Effect.fn("Hub.inspect")(function* (source: InspectSource, token: Option.Option<Redacted.Redacted<string>>, depth: Depth = "all") {
    const connection = connect(settings, token, source.patience)
    const kept = remembering(connection, memory)
    // Who may read the rest is for the hub to say each time.
    const readerOf = (resolved: Resolved) => (resolved.gated || resolved.private || depth === "all" ? connection : kept)
    const askedOf = (repo: string, ref: string | undefined) => ({ repo, ref: ref ?? "main", hasToken: Option.isSome(token), commit: null })

    /** The commit that a ref means, of a repository that may be served to the caller as far as its description tells. */
    const pin = Effect.fnUntraced(function* (name: string, ref: string | undefined) {
      const asked = askedOf(name, ref)
      if (!isRepoName(name)) return yield* unknownRepository(asked)
      const resolved = yield* resolve(connection, name, ref).pipe(
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
      return resolved
    })

    const told = <A, R>(
      { commit, repo }: Resolved,
      effect: Effect.Effect<A, HubAnswer | HubRefusal | HubUnavailable | Unreadable | UnsupportedArchitecture, R>,
      kind?: "adapter"
    ) =>
      Effect.catchTags(effect, {
        HubAnswer: (answer) => refusalOf(answer, { ...askedOf(repo, source.ref), commit }),
        Unreadable: ({ reason }) => unsupportedFormat(reason, commit, kind),
        UnsupportedArchitecture: ({ reason }) =>
          new HubRefusal({
            code: "unsupported_architecture",
            message: reason,
            remedy: "Name a repository of a decoder model for text in the layout of Transformers.",
            commit
          })
      })

    /** What is known of a model, or null where the repository holds an adapter. */
    const readModel = Effect.fnUntraced(function* (resolved: Resolved, ref: string, perFile: number) {
      const { commit, gated, license, repo } = resolved
      const known = yield* cache.find(repo, commit, depth === "all")
      if (known !== null) {
        // What others were shown is no reason to show it to this caller: where not everybody may read, they prove that they may.
        const proof = gated || resolved.private ? known.facts.files.find(({ path }) => path === "config.json") : undefined
        if (proof !== undefined) yield* readFile(connection, resolved, proof, maxProofBytes, () => collect(proof.size))
        const facts: RepositoryFacts = { ...known.facts, repo, ref, gated, license: license.name }
        return { root: null, model: { facts, modules: known.modules } }
      }
      const root = yield* listRoot(connection, resolved)
      if (isAdapter(root)) return { root, model: null }
      const { facts, modules, whole } = yield* readCommit(readerOf(resolved), resolved, root, { ref, depth, perFile })
      yield* cache.keep({ facts, modules }, whole)
      return { root, model: { facts, modules } }
    })

    const read = Effect.gen(function* () {
      const ref = source.ref ?? "main"
      const resolved = yield* pin(source.repo, source.ref)
      const { commit, repo } = resolved
      const { model, root } = yield* told(resolved, readModel(resolved, ref, 1))
      if (model !== null) return { facts: model.facts, hash: null }

      const before = kept.sent()
      const own = yield* told(resolved, readAdapter(readerOf(resolved), resolved, root), "adapter")
      const perFile = Math.max(1, Math.ceil((kept.sent() - before) / 2))
      const baseRef = source.base ?? own.config.revision ?? undefined
      const base = yield* Effect.gen(function* () {
        const pinned = yield* pin(own.base, baseRef)
        const read = yield* told(pinned, readModel(pinned, baseRef ?? "main", perFile))
        return read.model ?? (yield* nestedAdapter(pinned.repo, pinned.commit))
      }).pipe(Effect.catchTag("HubRefusal", (refusal) => ofBase({ repo, commit, own }, refusal)))
      const facts = yield* told(resolved, adapterFacts({ connection: readerOf(resolved), resolved, root, ref, own, base, depth }), "adapter")
      return { facts, hash: depth === "all" && source.hash !== false ? told(resolved, hashOnHub(connection, resolved, own), "adapter") : null }
    }).pipe(
      reading.withPermit,
      // Without the permit: of a large adapter that takes minutes, in which others are to be read.
      Effect.flatMap(({ facts, hash }) => (hash === null ? Effect.succeed(facts) : Effect.map(hash, (content_hash) => withHash(facts, content_hash))))
    )

    if (depth === "all") return yield* read
    return yield* Effect.timeoutOrElse(read, {
      duration: settings.previewTimeout,
      orElse: () => Effect.fail(new HubUnavailable({ message: "The model hub takes too long to answer." }))
    })
  })
