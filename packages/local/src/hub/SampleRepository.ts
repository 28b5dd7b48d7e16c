import { createHash } from "node:crypto"
import type { DiskFile } from "./DiskFile.ts"

/** The bytes of a file: `head`, then zeros up to `size`, so that a large file needs no memory. */
export interface Content {
  readonly head: Uint8Array
  /** Bytes. */
  readonly size: number
}

/** The content of a large file on disk. */
export interface StoredContent extends Content {
  readonly disk: DiskFile
  readonly sha256: string
}

export interface SampleFile extends Content {
  readonly path: string
  /** The file that has the bytes; absent: they are `head`. */
  readonly disk?: DiskFile
  /** Git's blob ID; for a file in LFS, the ID of its pointer. */
  readonly blobId: string
  /** For a file in LFS: the hash of its content, and the pointer that git stores. */
  readonly lfs: { readonly sha256: string; readonly pointer: Uint8Array } | null
}

export interface SampleCommit {
  readonly id: string
  readonly title: string
  /** In path order. */
  readonly files: ReadonlyArray<SampleFile>
}

export interface SampleRepository {
  /** `owner/name`. */
  readonly name: string
  /** Null if its card states none. */
  readonly license: string | null
  /** Whether only holders of the token may read its files. */
  readonly gated: boolean
  /** Whether its existence is hidden from everyone else. */
  readonly private: boolean
  /** Newest first. The first one is `main`. */
  readonly commits: readonly [SampleCommit, ...Array<SampleCommit>]
  readonly tags: ReadonlyMap<string, string>
}

const blobId = (bytes: Uint8Array): string => createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex")

const inLfs = /\.(safetensors|bin|gguf|model)$/

/** The largest file that the hub stores in git, in bytes. */
const maxGitBytes = 10 * 2 ** 20

/** Whether the hub stores the file in LFS. */
export const isLargeFile = (path: string, size: number): boolean => inLfs.test(path) || size > maxGitBytes

const inLargeStorage = (path: string, content: Content, sha256: string): SampleFile => {
  const pointer = Buffer.from(`version https://git-lfs.github.com/spec/v1\noid sha256:${sha256}\nsize ${content.size}\n`)
  return { ...content, path, blobId: blobId(pointer), lfs: { sha256, pointer } }
}

const makeFile = (path: string, content: Content | StoredContent): SampleFile => {
  if ("disk" in content) {
    const { disk, head, sha256, size } = content
    return { ...inLargeStorage(path, { head, size }, sha256), disk }
  }
  if (!inLfs.test(path)) return { ...content, path, blobId: blobId(content.head), lfs: null }
  // A file with virtual content gets the hash of its head. No test downloads it completely.
  return inLargeStorage(path, content, createHash("sha256").update(content.head).digest("hex"))
}

export interface CommitContent {
  readonly title: string
  readonly files: Readonly<Record<string, string | Uint8Array | Content | StoredContent>>
  readonly tag?: string
}

/**
 * Creates a repository from its commits, oldest first. IDs depend only on the content, so they are the same on every
 * machine.
 */
export const makeRepository = (options: {
  readonly name: string
  /** Default: `apache-2.0`. */
  readonly license?: string | null
  readonly gated?: boolean
  readonly private?: boolean
  readonly commits: readonly [CommitContent, ...Array<CommitContent>]
}): SampleRepository => {
  const tags = new Map<string, string>()
  let parent = ""
  const make = ({ files, tag, title }: CommitContent): SampleCommit => {
    const sampleFiles = Object.entries(files)
      .map(([path, file]) => {
        if (typeof file !== "string" && "head" in file) return makeFile(path, file)
        const head = typeof file === "string" ? Buffer.from(file) : file
        return makeFile(path, { head, size: head.length })
      })
      .sort((a, b) => (a.path < b.path ? -1 : 1))
    const hash = createHash("sha1").update(`${options.name}\n${parent}\n${title}\n`)
    for (const { blobId, path } of sampleFiles) hash.update(`${blobId} ${path}\n`)
    const id = hash.digest("hex")
    if (tag !== undefined) tags.set(tag, id)
    parent = id
    return { id, title, files: sampleFiles }
  }
  const [first, ...later] = options.commits
  const oldest = make(first)
  const [newest = oldest, ...older] = later.map(make).reverse()
  return {
    name: options.name,
    license: options.license === undefined ? "apache-2.0" : options.license,
    gated: options.gated ?? false,
    private: options.private ?? false,
    commits: newest === oldest ? [oldest] : [newest, ...older, oldest],
    tags
  }
}

/** The commit of a branch, a tag, a full commit hash or a prefix of one (7 digits or more). */
export const findCommit = (repository: SampleRepository, revision: string): SampleCommit | undefined => {
  const name = revision.replace(/^refs\/(heads|tags)\//, "")
  if (name === "main" || name === "HEAD") return repository.commits[0]
  const id = repository.tags.get(name) ?? name
  return /^[0-9a-f]{7,40}$/.test(id) ? repository.commits.find((commit) => commit.id.startsWith(id)) : undefined
}

const zeros = new Uint8Array(64 * 1024)

/** The bytes from `from` (inclusive) to `to` (exclusive), in chunks. */
export function* readContent({ head }: Content, from: number, to: number): Generator<Uint8Array> {
  let at = from
  while (at < to) {
    const piece = at < head.length ? head.subarray(at, Math.min(to, head.length, at + zeros.length)) : zeros.subarray(0, Math.min(zeros.length, to - at))
    yield piece
    at += piece.length
  }
}
