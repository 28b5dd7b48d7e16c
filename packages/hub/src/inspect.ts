import type { Commit, RepositoryFacts } from "@seatrial/domain"
import { Effect, Option, type Redacted, type Semaphore } from "effect"
import { adapterFacts, describeAdapter, hashOnHub, isAdapter, type OwnAdapter, readAdapter } from "./adapter.ts"
import { collect } from "./contentHash.ts"
import type { FactsCache } from "./FactsCache.ts"
import { type HubAnswer, HubRefusal, HubUnavailable, type Unreadable, type UnsupportedArchitecture } from "./failures.ts"
import { connect, type HubConnection } from "./HubConnection.ts"
import type { HubSettings } from "./HubSettings.ts"
import { licenseRefusal } from "./license.ts"
import { readCommit } from "./readCommit.ts"
import { type Depth, readFile } from "./readFile.ts"
import { RefusalReason } from "./refusals.ts"
import { type ReadMemory, remembering } from "./remembering.ts"
import { listRoot, type Resolved, resolve } from "./resolve.ts"
import type { Patience } from "./retryHub.ts"
import { isRepoName, refusalOf, unsupportedFormat } from "./screening.ts"

/** Maximum size of a configuration that is read again to prove the caller's access. */
const maxProofBytes = 4 * 1024 * 1024

/** What to read from the hub. */
export interface InspectSource {
  readonly repo: string
  readonly ref?: string | undefined
  /** The commit of an adapter's base if it was pinned before. Otherwise the adapter's own reference is resolved. */
  readonly base?: Commit | undefined
  /** Whether to hash an adapter's tensors if everything is read. Default true. */
  readonly hash?: boolean
  /** How long transient failures are retried; see `connect`. Default `brief`. */
  readonly patience?: Patience
}

/** Rewrites the refusal of a base for its adapter. */
const ofBase = (adapter: { readonly repo: string; readonly commit: Commit; readonly own: OwnAdapter }, { reason }: HubRefusal): HubRefusal =>
  new HubRefusal({ reason: RefusalReason.BaseRefused({ adapter: describeAdapter(adapter.repo, adapter.own), base: reason }), commit: adapter.commit })

const withHash = (facts: RepositoryFacts, content_hash: string): RepositoryFacts =>
  facts.adapter === undefined ? facts : { ...facts, adapter: { ...facts.adapter, content_hash } }

/** One call of `inspect`. */
interface Inspection {
  readonly settings: HubSettings
  readonly cache: FactsCache
  readonly source: InspectSource
  readonly hasToken: boolean
  readonly depth: Depth
  readonly connection: HubConnection
  /** A connection that answers from what earlier calls have read. */
  readonly cachedConnection: HubConnection
}

/**
 * The connection for reading a repository. The hub decides in each case whether the caller may read a restricted one.
 */
const readerOf = ({ cachedConnection, connection, depth }: Inspection, { gated, private: isPrivate }: Resolved) =>
  gated || isPrivate || depth === "all" ? connection : cachedConnection

const requestOf = ({ hasToken }: Inspection, repo: string, ref: string | undefined) => ({ repo, ref: ref ?? "main", hasToken, commit: null })

/** The commit of a ref, if the repository's description allows serving it to the caller. */
const pin = Effect.fnUntraced(function* (inspection: Inspection, name: string, ref: string | undefined) {
  const request = requestOf(inspection, name, ref)
  if (!isRepoName(name)) return yield* new HubRefusal({ reason: RefusalReason.RepositoryNotFound(request), commit: null })
  const resolved = yield* resolve(inspection.connection, name, ref).pipe(
    Effect.catchTags({
      HubAnswer: (answer) => refusalOf(answer, request),
      Unreadable: ({ reason }) => unsupportedFormat(reason, null)
    })
  )
  const { commit, gated, license, repo } = resolved
  const closed = resolved.disabled ? RefusalReason.RepositoryDisabled({ repo }) : null
  const needsToken = gated && !inspection.hasToken ? RefusalReason.NoHubConnection({ repo }) : null
  const reason = closed ?? licenseRefusal(license, inspection.settings, repo) ?? needsToken
  return reason === null ? resolved : yield* new HubRefusal({ reason, commit })
})

/** Maps the errors of reading a repository to refusals. */
const asRefusal = <A, R>(
  inspection: Inspection,
  { commit, repo }: Resolved,
  effect: Effect.Effect<A, HubAnswer | HubRefusal | HubUnavailable | Unreadable | UnsupportedArchitecture, R>,
  kind?: "adapter"
) =>
  Effect.catchTags(effect, {
    HubAnswer: (answer) => refusalOf(answer, { ...requestOf(inspection, repo, inspection.source.ref), commit }),
    Unreadable: ({ reason }) => unsupportedFormat(reason, commit, kind),
    UnsupportedArchitecture: ({ reason }) => new HubRefusal({ reason: RefusalReason.UnsupportedArchitecture({ problem: reason }), commit })
  })

/**
 * Facts that other callers have read do not prove this caller's access. For a restricted repository, the caller must
 * prove it.
 */
const proveAccess = Effect.fnUntraced(function* ({ connection }: Inspection, resolved: Resolved, files: RepositoryFacts["files"]) {
  const proof = resolved.gated || resolved.private ? files.find(({ path }) => path === "config.json") : undefined
  if (proof !== undefined) yield* readFile(connection, resolved, proof, maxProofBytes, () => collect(proof.size))
})

/** The facts of a model, or null if the repository holds an adapter. */
const readModel = Effect.fnUntraced(function* (inspection: Inspection, resolved: Resolved, ref: string, perFile: number) {
  const { cache, connection, depth } = inspection
  const { commit, gated, license, repo } = resolved
  const known = yield* cache.find(repo, commit, depth === "all")
  if (known !== null) {
    yield* proveAccess(inspection, resolved, known.facts.files)
    const facts: RepositoryFacts = { ...known.facts, repo, ref, gated, license: license.name }
    return { root: null, model: { facts, modules: known.modules } }
  }
  const root = yield* listRoot(connection, resolved)
  if (isAdapter(root)) return { root, model: null }
  const { facts, isComplete, modules } = yield* readCommit(readerOf(inspection, resolved), resolved, root, { ref, depth, perFile })
  yield* cache.keep({ facts, modules }, isComplete)
  return { root, model: { facts, modules } }
})

/** The base model of an adapter. `perFile`: requests that one file takes. */
const readBase = (inspection: Inspection, adapter: { readonly repo: string; readonly commit: Commit; readonly own: OwnAdapter }, perFile: number) => {
  const ref = inspection.source.base ?? adapter.own.config.revision ?? undefined
  return Effect.gen(function* () {
    const pinned = yield* pin(inspection, adapter.own.base, ref)
    const { model } = yield* asRefusal(inspection, pinned, readModel(inspection, pinned, ref ?? "main", perFile))
    return model ?? (yield* new HubRefusal({ reason: RefusalReason.AdapterOfAdapter({ repo: pinned.repo }), commit: pinned.commit }))
  }).pipe(Effect.catchTag("HubRefusal", (refusal) => ofBase(adapter, refusal)))
}

/** The facts of a repository, and the effect that hashes an adapter's tensors; null if they are not hashed. */
const readFacts = Effect.fnUntraced(function* (inspection: Inspection) {
  const { cachedConnection, connection, depth, source } = inspection
  const ref = source.ref ?? "main"
  const resolved = yield* pin(inspection, source.repo, source.ref)
  const { commit, repo } = resolved
  const { model, root } = yield* asRefusal(inspection, resolved, readModel(inspection, resolved, ref, 1))
  if (model !== null) return { facts: model.facts, hash: null }

  const reader = readerOf(inspection, resolved)
  const before = cachedConnection.sent()
  const own = yield* asRefusal(inspection, resolved, readAdapter(reader, resolved, root), "adapter")
  const perFile = Math.max(1, Math.ceil((cachedConnection.sent() - before) / 2))
  const base = yield* readBase(inspection, { repo, commit, own }, perFile)
  const facts = yield* asRefusal(inspection, resolved, adapterFacts({ connection: reader, resolved, root, ref, own, base, depth }), "adapter")
  return { facts, hash: depth === "all" && source.hash !== false ? asRefusal(inspection, resolved, hashOnHub(connection, resolved, own), "adapter") : null }
})

/**
 * The service's `inspect`, with at most as many concurrent calls as `reading` permits. It makes one request for the
 * commit and its files, then reads the small files and the headers of the weight files, several at a time.
 */
export const inspect = (settings: HubSettings, cache: FactsCache, memory: ReadMemory, reading: Semaphore.Semaphore) =>
  Effect.fn("Hub.inspect")(function* (source: InspectSource, token: Option.Option<Redacted.Redacted<string>>, depth: Depth = "all") {
    const connection = connect(settings, token, source.patience)
    const cachedConnection = remembering(connection, memory)
    const read = readFacts({ settings, cache, source, hasToken: Option.isSome(token), depth, connection, cachedConnection }).pipe(
      reading.withPermit,
      // Without the permit: hashing a large adapter takes minutes and must not block other calls.
      Effect.flatMap(({ facts, hash }) => (hash === null ? Effect.succeed(facts) : Effect.map(hash, (content_hash) => withHash(facts, content_hash))))
    )
    if (depth === "all") return yield* read
    return yield* Effect.timeoutOrElse(read, {
      duration: settings.previewTimeout,
      orElse: () => Effect.fail(new HubUnavailable({ message: "The model hub takes too long to answer." }))
    })
  })
