import type { RepositoryFile } from "@seatrial/domain"
import { Effect, Result } from "effect"
import { readToEnd } from "./contentHash.ts"
import { Unreadable } from "./failures.ts"
import type { HubConnection } from "./HubConnection.ts"
import { type Header, headerLength, maxHeaderBytes, type Sink, scanHeader } from "./safetensors.ts"
import { kindOf, type TensorGroup, TensorGroups } from "./TensorGroups.ts"
import { TensorNames } from "./TensorNames.ts"
import type { Placed, WeightIndex } from "./weightIndex.ts"

/**
 * Size of the first read of a weight file. It contains the complete header of nearly every shard, so one request is
 * enough.
 */
const firstRead = 128 * 1024
/**
 * Maximum total length of the headers of one repository in bytes. The largest current model, with 280,000 tensors,
 * stays below the first limit with all headers, and below a third of the second with the headers that a preview reads.
 */
const maxHeadersBytes = { all: 48 * 1024 * 1024, few: 24 * 1024 * 1024 } as const
/** Number of files whose headers are read at once, if none is expected to be longer than `longHeader` bytes. */
export const parallelReads = 6
const longHeader = 1024 * 1024

/**
 * Length in bytes of a tensor's entry in a header, without its name.
 * `{"dtype":"U8","shape":[],"data_offsets":[0,0]},"":` is the shortest; long shapes in large files stay below the
 * maximum.
 */
const entryBytes = { least: 48, most: 220 }
/** Maximum length of a header's content other than tensors: metadata and padding. */
const maxOtherHeaderBytes = 256 * 1024

/** The weights of a repository. */
export interface Weights {
  readonly groups: ReadonlyArray<TensorGroup>
  /** Tensors from headers, not only from the index. */
  readonly fromHeaders: ReadonlyArray<TensorGroup>
  /** Total bytes of all tensors. */
  readonly bytes: number
  /**
   * Whether every header was read. Otherwise the rest is inferred from those that were read and the index, and is
   * consistent with the files' sizes.
   */
  readonly isComplete: boolean
}

/** What the start of a file holds. The header is null if it is longer than the start. */
interface FileStart {
  readonly length: number
  readonly header: Header | null
}

/** Limit of header bytes, and the bytes of headers that were not read yet. */
interface Room {
  readonly limit: number
  left: number
}

/** Reads a weight file's header as the file arrives from its start, and ignores the bytes after it. */
const scanStart = ({ path, size }: RepositoryFile, room: Room): Sink<FileStart> => {
  const prefix = new Uint8Array(8)
  let prefixed = 0
  let length = 0
  let left = 0
  let header: Sink<Header> | null = null
  const open = (): Sink<Header> => {
    length = Result.getOrThrowWith(headerLength(prefix.subarray(0, prefixed), size, path), (problem) => problem)
    if (length > room.left) throw new Unreadable({ reason: `The repository's safetensors headers are longer than ${room.limit} bytes.` })
    left = length
    return scanHeader(size - 8 - length, path)
  }
  return {
    push: (chunk) => {
      const ofPrefix = chunk.subarray(0, 8 - prefixed)
      prefix.set(ofPrefix, prefixed)
      prefixed += ofPrefix.length
      if (prefixed < 8) return
      header ??= open()
      const ofHeader = chunk.subarray(ofPrefix.length, ofPrefix.length + left)
      header.push(ofHeader)
      left -= ofHeader.length
    },
    end: () => {
      header ??= open()
      return { length, header: left > 0 ? null : header.end() }
    }
  }
}

/**
 * Reads a weight file's complete header with one request for its start if `guess` (bytes) is long enough, otherwise
 * with two.
 */
const readHeader = Effect.fnUntraced(function* (connection: HubConnection, url: string, file: RepositoryFile, guess: number, room: Room) {
  const { path, size } = file
  if (size === 0) return yield* new Unreadable({ reason: `${path} is empty.` })
  const last = Math.min(size, Math.max(firstRead, Math.min(guess, 8 + maxHeaderBytes))) - 1
  const { header, length } = yield* connection.readInto(url, 0, last, () => readToEnd(scanStart(file, room)))
  room.left -= length
  return header ?? (yield* connection.readInto(url, 8, 7 + length, () => readToEnd(scanHeader(size - 8 - length, path))))
})

/** A small set of files that together hold a tensor of each kind, those with the most new kinds first, up to `most`. */
const coveringFiles = (index: WeightIndex, most: number): ReadonlyArray<string> => {
  const kinds = new Map([...index.files].map(([path, { groups }]) => [path, new Set([...groups.values()].map(({ name }) => kindOf(name)))]))
  const chosen: Array<string> = []
  while (chosen.length < most) {
    let best: readonly [string, ReadonlySet<string>] | undefined
    for (const entry of kinds) if (entry[1].size > (best?.[1].size ?? 0)) best = entry
    if (best === undefined) break
    chosen.push(best[0])
    const [path, newKinds] = best
    kinds.delete(path)
    for (const kind of newKinds) for (const remaining of kinds.values()) remaining.delete(kind)
  }
  return chosen
}

/** Type, shape and bytes of one tensor of each kind, if all known ones agree. */
const knownKinds = (groups: Iterable<TensorGroup>): ReadonlyMap<string, TensorGroup | null> => {
  const known = new Map<string, TensorGroup | null>()
  for (const group of groups) {
    const kind = kindOf(group.name)
    const other = known.get(kind)
    if (other === undefined) known.set(kind, { ...group, bytes: group.bytes / group.count })
    else if (other !== null && (other.dtype !== group.dtype || other.shape.join() !== group.shape.join())) known.set(kind, null)
  }
  return known
}

/** Whether a header can have that length. */
const isHeader = (bytes: number, { nameBytes, tensors }: Pick<Placed, "nameBytes" | "tensors">, files = 1): boolean =>
  bytes >= nameBytes + tensors * entryBytes.least && bytes <= nameBytes + tensors * entryBytes.most + files * maxOtherHeaderBytes

/**
 * Whether the total in an index leaves exactly the space for the headers of these files. In several real repositories
 * the total means something else.
 */
const agrees = (files: ReadonlyArray<RepositoryFile>, index: WeightIndex, total: number): boolean => {
  const placed = { nameBytes: 0, tensors: 0 }
  for (const { nameBytes, tensors } of index.files.values()) {
    placed.nameBytes += nameBytes
    placed.tensors += tensors
  }
  return isHeader(files.reduce((sum, { size }) => sum + size - 8, 0) - total, placed, files.length)
}

/**
 * Infers the content of an unread file from its names and size. `agrees` then checks that its size leaves exactly the
 * space for the header.
 */
const infer = (file: RepositoryFile, placed: Placed, known: ReadonlyMap<string, TensorGroup | null>) => {
  const groups: Array<TensorGroup> = []
  let bytes = 0
  let agrees = true
  for (const { count, name } of placed.groups.values()) {
    const like = known.get(kindOf(name))
    if (like === undefined || like === null) agrees = false
    const group = { name, dtype: like?.dtype ?? "U8", shape: like?.shape ?? [], count, bytes: (like?.bytes ?? 0) * count }
    groups.push(group)
    bytes += group.bytes
  }
  const { nameBytes, tensors } = placed
  agrees &&= isHeader(file.size - 8 - bytes, placed)
  if (agrees) return { groups, bytes, agrees }
  // The size is exact. Only the header's share is estimated, within a few bytes per tensor.
  const rest = Math.max(0, file.size - 8 - nameBytes - tensors * 110)
  const scale = bytes === 0 ? 0 : rest / bytes
  const scaled = groups.map((group) => ({ ...group, bytes: bytes === 0 ? Math.floor(rest / groups.length) : Math.floor(group.bytes * scale) }))
  return { groups: scaled, bytes: rest, agrees }
}

/** Adds the tensors of the files whose headers were not read, as far as the index and the files' sizes show them. */
const addInferred = (groups: TensorGroups, paths: Iterable<string>, byPath: ReadonlyMap<string, RepositoryFile>, index: WeightIndex | null) => {
  const known = knownKinds(groups.values())
  let bytes = groups.bytes
  let isConsistent = true
  for (const path of paths) {
    const [file, placed] = [byPath.get(path), index?.files.get(path)]
    if (file === undefined || placed === undefined) continue
    const inferred = infer(file, placed, known)
    bytes += inferred.bytes
    isConsistent &&= inferred.agrees
    groups.addAll(inferred.groups)
  }
  return { bytes, isConsistent }
}

/** Why the tensors cannot be served, as a sentence; null if they can. */
const groupsProblem = (groups: TensorGroups, bytes: number): string | null => {
  if (groups.full) return "The repository has more kinds of tensors than any model."
  if (groups.count === 0) return "The repository's safetensors files hold no tensor."
  return Number.isSafeInteger(bytes) ? null : "The repository's weights are larger than any machine."
}

interface WeightsSource {
  readonly connection: HubConnection
  readonly urlOf: (file: RepositoryFile) => string
  readonly files: ReadonlyArray<RepositoryFile>
  readonly index: WeightIndex | null
  /** The number of requests left. */
  readonly left: () => number
}

/** The tensors that were read so far, and the files that were not. */
class HeadersRead {
  readonly groups = new TensorGroups()
  readonly byPath: ReadonlyMap<string, RepositoryFile>
  readonly left: Set<string>
  readonly #source: WeightsSource
  readonly #names: TensorNames
  readonly #numbers: ReadonlyMap<string, number>
  readonly #room: Room

  constructor(source: WeightsSource) {
    const { files, index, left } = source
    const limit = maxHeadersBytes[left() === Number.POSITIVE_INFINITY ? "all" : "few"]
    this.#source = source
    this.#names = index?.names ?? new TensorNames()
    this.#numbers = new Map(files.map(({ path }, at) => [path, index?.files.get(path)?.number ?? at + 1]))
    this.#room = { limit, left: limit }
    this.byPath = new Map(files.map((file) => [file.path, file]))
    this.left = new Set(this.byPath.keys())
  }

  /** Reads the headers of these files. */
  read(paths: ReadonlyArray<string>) {
    const { connection, urlOf } = this.#source
    const chosen = paths.flatMap((path) => this.byPath.get(path) ?? [])
    return Effect.forEach(
      chosen,
      (file) =>
        Effect.flatMap(readHeader(connection, urlOf(file), file, this.#expectedBytes(file), this.#room), (header) => {
          this.left.delete(file.path)
          const problem = this.#take(file, header)
          return problem === null ? Effect.void : Effect.fail(new Unreadable({ reason: problem }))
        }),
      // Long headers are read one at a time, because unread bytes are in memory together with the results of other
      // files.
      { concurrency: chosen.some((file) => this.#expectedBytes(file) > longHeader) ? 1 : parallelReads, discard: true }
    )
  }

  /** Approximate length of a file's header by the index; 0 without an index. */
  #expectedBytes({ path }: RepositoryFile): number {
    const placed = this.#source.index?.files.get(path)
    return placed === undefined ? 0 : placed.nameBytes + placed.tensors * 160 + 4_096
  }

  /** Adds the tensors of a file. Returns why they contradict the index or another file, as a sentence, or null. */
  #take({ path }: RepositoryFile, header: Header): string | null {
    const placed = this.#names.hold(header.names, this.#numbers.get(path) ?? 0)
    if (placed === null) return `${path} holds a tensor twice, or one that belongs to another file.`
    if (placed < (this.#source.index?.files.get(path)?.tensors ?? 0)) return `The index lists tensors that ${path} does not contain.`
    this.groups.addAll(header.groups.values())
    return null
  }
}

/**
 * Reads the headers of as many files as `left` allows: first files that together hold a tensor of each kind, then those
 * whose size does not match their names.
 */
const readSome = Effect.fnUntraced(function* ({ connection, left }: WeightsSource, index: WeightIndex, headers: HeadersRead) {
  // The first file shows how many requests each one takes, because the hub may redirect.
  const before = connection.sent()
  const [first = "", ...rest] = coveringFiles(index, Math.max(1, left()))
  yield* headers.read([first])
  const each = Math.max(1, connection.sent() - before)
  const mayRead = () => Math.max(0, Math.floor(left() / each))
  yield* headers.read(headers.left.size <= mayRead() ? [...headers.left] : rest.slice(0, mayRead()))
  const known = knownKinds(headers.groups.values())
  const odd = [...headers.left].filter((path) => {
    const [file, placed] = [headers.byPath.get(path), index.files.get(path)]
    return file !== undefined && placed !== undefined && !infer(file, placed, known).agrees
  })
  yield* headers.read(odd.slice(0, mayRead()))
})

/**
 * Reads the headers of weight files: of all, or of as many as `left` allows. The index determines which, so that each
 * kind of tensor is included.
 */
export const readWeights = Effect.fnUntraced(function* (source: WeightsSource) {
  const { files, index, left } = source
  const headers = new HeadersRead(source)
  if (index === null || left() === Number.POSITIVE_INFINITY) yield* headers.read([...headers.left])
  else yield* readSome(source, index, headers)

  const { groups } = headers
  const fromHeaders = [...groups.values()].map((group) => ({ ...group }))
  const inferred = addInferred(groups, headers.left, headers.byPath, index)
  const isTotalBetter = !inferred.isConsistent && index !== null && index.totalBytes !== null && agrees(files, index, index.totalBytes)
  const bytes = isTotalBetter ? index.totalBytes : inferred.bytes
  const problem = groupsProblem(groups, bytes)
  if (problem !== null) return yield* new Unreadable({ reason: problem })
  const weights: Weights = { groups: [...groups.values()], fromHeaders, bytes, isComplete: headers.left.size === 0 }
  return weights
})
