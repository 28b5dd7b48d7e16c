import { Commit, optionalNullable, RepoName, type RepositoryFile } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { type HubAnswer, HubUnavailable, Unreadable } from "./failures.ts"
import type { HubConnection } from "./HubConnection.ts"
import { type License, licenseOf } from "./license.ts"
import { isPlainPath } from "./servingFiles.ts"

/** Maximum number of files in a repository's root. */
const maxFiles = 5_000
/** Maximum number of pages of a file list; the hub's have a thousand entries each. */
const listPages = 20
/** Number of pages of commits in which an abbreviated commit is searched. */
const commitPages = 3

/** A ref's commit and the hub's facts about it. All later requests use the commit. */
export interface Resolved {
  /** The repository's current name, which differs from the request after a rename. */
  readonly repo: string
  readonly commit: Commit
  readonly gated: boolean
  readonly private: boolean
  readonly disabled: boolean
  readonly license: License
  /** All files, if the hub's response included them. */
  readonly files: ReadonlyArray<RepositoryFile> | null
}

const Info = Schema.Struct({
  sha: Commit,
  id: Schema.optionalKey(Schema.Unknown),
  gated: Schema.optionalKey(Schema.Unknown),
  private: Schema.optionalKey(Schema.Unknown),
  disabled: Schema.optionalKey(Schema.Unknown),
  tags: Schema.optionalKey(Schema.Unknown),
  cardData: Schema.optionalKey(Schema.Unknown),
  siblings: Schema.optionalKey(Schema.Unknown)
})

const Size = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 50 }))
const Sha1 = Schema.String.check(Schema.isPattern(/^[0-9a-f]{40}$/u))
const Sha256 = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u))

const Sibling = Schema.Struct({
  rfilename: Schema.String,
  size: Size,
  blobId: Sha1,
  lfs: optionalNullable(Schema.Struct({ sha256: Sha256, size: Size }))
})
const Entry = Schema.Struct({
  type: Schema.String,
  path: Schema.String,
  size: Size,
  oid: Sha1,
  lfs: optionalNullable(Schema.Struct({ oid: Sha256, size: Size }))
})
const decodeInfo = Schema.decodeUnknownOption(Info)
const decodeSiblings = Schema.decodeUnknownOption(Schema.Array(Sibling))
const decodeTree = Schema.decodeUnknownOption(Schema.Array(Schema.Unknown))
const decodeEntry = Schema.decodeUnknownOption(Entry)
const decodeNamed = Schema.decodeUnknownOption(Schema.Struct({ path: Schema.String, type: Schema.String }))
const decodeCommits = Schema.decodeUnknownOption(Schema.Array(Schema.Struct({ id: Commit })))
const References = Schema.Array(Schema.Struct({ targetCommit: Commit }))
const decodeRefs = Schema.decodeUnknownOption(Schema.Struct({ branches: References, tags: References }))
const isRepoName = Schema.is(RepoName)
const isCommit = Schema.is(Commit)

const notUnderstood = new HubUnavailable({ message: "The model hub's description of the repository has an unknown format." })

/** The files of a root by path, or the problem with their list. */
const rootOf = (files: Iterable<RepositoryFile>): ReadonlyMap<string, RepositoryFile> | Unreadable => {
  const root = new Map<string, RepositoryFile>()
  for (const file of files) {
    if (!isPlainPath(file.path)) return new Unreadable({ reason: "The repository lists a file whose name is not a plain path." })
    if (file.path.includes("/")) continue
    if (root.has(file.path)) return new Unreadable({ reason: "The repository lists a file twice." })
    if (root.size === maxFiles) return new Unreadable({ reason: `The repository has more than ${maxFiles} files.` })
    root.set(file.path, file)
  }
  return root
}

const orFail = <A>(value: A | Unreadable): Effect.Effect<A, Unreadable> => (value instanceof Unreadable ? Effect.fail(value) : Effect.succeed(value))

const expanded = ["sha", "gated", "private", "disabled", "tags", "cardData"].map((field) => `expand%5B%5D=${field}`).join("&")

/** The files that the hub's description of a revision lists; null if it lists none. */
const siblingFiles = (siblings: unknown): ReadonlyArray<RepositoryFile> | null => {
  const listed = Option.getOrNull(decodeSiblings(siblings))
  if (listed === null) return null
  return listed.map(({ blobId, lfs, rfilename, size }) => ({ path: rfilename, size: lfs?.size ?? size, blob_id: blobId, sha256: lfs?.sha256 ?? null }))
}

/** Describes a revision, including its files if they fit into one response. */
const describe = Effect.fnUntraced(function* (connection: HubConnection, repo: string, ref: string | undefined) {
  const path = `/api/models/${repo}${ref === undefined ? "" : `/revision/${encodeURIComponent(ref)}`}`
  const withFiles = connection.getJson(`${path}?blobs=true`)
  const { value } = yield* Effect.catchTag(withFiles, "Unreadable", () => connection.getJson(`${path}?${expanded}`))
  const info = decodeInfo(value)
  if (Option.isNone(info)) return yield* notUnderstood
  const { id, siblings, ...facts } = info.value
  // A commit must resolve to itself. Otherwise the server is not a hub that can be pinned by.
  if (isCommit(ref) && facts.sha !== ref) return yield* notUnderstood
  const resolved: Resolved = {
    repo: isRepoName(id) ? id : repo,
    commit: facts.sha,
    gated: facts.gated !== undefined && facts.gated !== false && facts.gated !== null,
    private: facts.private === true,
    disabled: facts.disabled === true,
    license: licenseOf(facts),
    files: siblingFiles(siblings)
  }
  return resolved
})

/**
 * The only commit with this prefix: among the newest of the default branch, otherwise among the heads of other branches
 * and tags. The hub itself accepts full commits only.
 */
const findCommit = Effect.fnUntraced(function* (connection: HubConnection, repo: string, beginning: string, answer: HubAnswer) {
  const matches = new Set<Commit>()
  let path: string | null = `/api/models/${repo}/commits/main?limit=100`
  for (let page = 0; page < commitPages && path !== null; page++) {
    const { next, value }: { readonly value: unknown; readonly next: string | null } = yield* connection.getJson(path)
    for (const { id } of Option.getOrElse(decodeCommits(value), () => [])) if (id.startsWith(beginning)) matches.add(id)
    path = next
  }
  if (matches.size === 0) {
    const { value } = yield* connection.getJson(`/api/models/${repo}/refs`)
    const { branches, tags } = Option.getOrElse(decodeRefs(value), () => ({ branches: [], tags: [] }))
    for (const { targetCommit } of [...branches, ...tags]) if (targetCommit.startsWith(beginning)) matches.add(targetCommit)
  }
  const [only, ...rest] = matches
  if (only === undefined || rest.length > 0) return yield* answer
  return only
})

/**
 * Resolves a branch, a tag, a commit or an abbreviated commit, in one request except for the last. Without a ref, the
 * default branch.
 */
export const resolve = Effect.fnUntraced(function* (connection: HubConnection, repo: string, ref: string | undefined) {
  return yield* describe(connection, repo, ref).pipe(
    Effect.catchTag("HubAnswer", (answer) => {
      // Commits are in lower case. A branch name may look like a commit in upper case, so it is tried first.
      const digits = ref?.toLowerCase() ?? ""
      if (!/^[0-9a-f]{7,40}$/.test(digits) || (answer.code !== "RevisionNotFound" && answer.status !== 400)) return Effect.fail(answer)
      if (isCommit(digits)) return digits === ref ? Effect.fail(answer) : describe(connection, repo, digits)
      return findCommit(connection, repo, digits, answer).pipe(Effect.flatMap((commit) => describe(connection, repo, commit)))
    })
  )
})

/** The file of an entry of a listed page; null for a folder. */
const entryFile = (item: unknown): RepositoryFile | null | Unreadable => {
  const entryName = Option.getOrNull(decodeNamed(item))
  if (entryName !== null && entryName.type !== "file" && isPlainPath(entryName.path)) return null
  const entry = Option.getOrNull(decodeEntry(item))
  if (entry === null) return new Unreadable({ reason: "The repository lists a file with an invalid name, size or hash." })
  const { lfs, oid, path, size } = entry
  return { path, size: lfs?.size ?? size, blob_id: oid, sha256: lfs?.oid ?? null }
}

/** The files of the repository's root by path, read page by page if they did not come with the commit. */
export const listRoot = Effect.fnUntraced(function* (connection: HubConnection, { commit, files, repo }: Resolved) {
  if (files !== null) return yield* orFail(rootOf(files))
  const listed: Array<RepositoryFile> = []
  let path: string | null = `/api/models/${repo}/tree/${commit}?recursive=false`
  for (let page = 0; path !== null; page++) {
    if (page === listPages) return yield* new Unreadable({ reason: "The repository's list of files has too many pages." })
    const { next, value }: { readonly value: unknown; readonly next: string | null } = yield* connection.getJson(path)
    const items = decodeTree(value)
    if (Option.isNone(items)) return yield* notUnderstood
    for (const item of items.value) {
      const file = yield* orFail(entryFile(item))
      if (file !== null) listed.push(file)
    }
    if (listed.length > maxFiles) return yield* new Unreadable({ reason: `The repository has more than ${maxFiles} files.` })
    path = next
  }
  return yield* orFail(rootOf(listed))
})
