import type { RepositoryFile } from "@seatrial/domain"
import { Effect, Result } from "effect"
import { readToEnd } from "./contentHash.ts"
import { Unreadable } from "./failures.ts"
import type { HubConnection } from "./HubConnection.ts"
import { type Header, headerLength, maxHeaderBytes, type Sink, scanHeader } from "./safetensors.ts"
import { kindOf, type TensorGroup, TensorGroups } from "./TensorGroups.ts"
import { TensorNames } from "./TensorNames.ts"
import type { Placed, WeightIndex } from "./weightIndex.ts"

/** First read of a weight file: holds the whole header of nearly every shard, so that one request does. */
const firstRead = 128 * 1024
/** Longest that the headers of one repository may be together, in bytes: all of the largest model of today, of 280,000 tensors, are shorter than the one, and those that a preview reads than a third of the other. */
const maxHeadersBytes = { all: 48 * 1024 * 1024, few: 24 * 1024 * 1024 } as const
/** Files whose headers are read at once, where none is expected to be longer than the other says, in bytes. */
export const parallelReads = 6
const longHeader = 1024 * 1024

/** A tensor's entry in a header beside its name: `{"dtype":"U8","shape":[],"data_offsets":[0,0]},"":` is the shortest, and long shapes of large files stay below the other. */
const entryBytes = { least: 48, most: 220 }
/** What a header holds beside its tensors, at most: metadata and padding. */
const besideEntries = 256 * 1024

/** What a repository's weights are. */
export interface Weights {
  readonly groups: ReadonlyArray<TensorGroup>
  /** Those that a header told, and not the index alone. */
  readonly seen: ReadonlyArray<TensorGroup>
  /** Bytes of all tensors. */
  readonly bytes: number
  /** Whether every header was read. Else the rest is known from those that were read and from the index, and agrees with the files' sizes. */
  readonly whole: boolean
}

/** What a file's beginning told of its header: null as the header where the beginning ends before it. */
interface Beginning {
  readonly length: number
  readonly header: Header | null
}

/** Bytes that headers may have, and those of them that none was read of yet. */
interface Room {
  readonly limit: number
  left: number
}

/** Reads a weight file's header as the file arrives from its beginning, and leaves out what follows. */
const scanBeginning = ({ path, size }: RepositoryFile, room: Room): Sink<Beginning> => {
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

/** A weight file's whole header from one request for its beginning, as far as `guess` (bytes) is long enough, else from two. */
const readHeader = Effect.fnUntraced(function* (connection: HubConnection, url: string, file: RepositoryFile, guess: number, room: Room) {
  const { path, size } = file
  if (size === 0) return yield* new Unreadable({ reason: `${path} is empty.` })
  const last = Math.min(size, Math.max(firstRead, Math.min(guess, 8 + maxHeaderBytes))) - 1
  const { header, length } = yield* connection.readInto(url, 0, last, () => readToEnd(scanBeginning(file, room)))
  room.left -= length
  return header ?? (yield* connection.readInto(url, 8, 7 + length, () => readToEnd(scanHeader(size - 8 - length, path))))
})

/** The files that together hold a tensor of each kind, the most telling first, up to `most`. */
const telling = (index: WeightIndex, most: number): ReadonlyArray<string> => {
  const kinds = new Map([...index.files].map(([path, { groups }]) => [path, new Set([...groups.values()].map(({ name }) => kindOf(name)))]))
  const chosen: Array<string> = []
  while (chosen.length < most) {
    let best: readonly [string, ReadonlySet<string>] | undefined
    for (const entry of kinds) if (entry[1].size > (best?.[1].size ?? 0)) best = entry
    if (best === undefined) break
    chosen.push(best[0])
    const [path, told] = best
    kinds.delete(path)
    for (const kind of told) for (const others of kinds.values()) others.delete(kind)
  }
  return chosen
}

/** Type, shape and bytes of one tensor of each kind, where all that were seen of it agree. */
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

/** Whether a header may be as long as that. */
const isHeader = (bytes: number, { nameBytes, tensors }: Pick<Placed, "nameBytes" | "tensors">, files = 1): boolean =>
  bytes >= nameBytes + tensors * entryBytes.least && bytes <= nameBytes + tensors * entryBytes.most + files * besideEntries

/** Whether the total that an index states leaves just the headers that the files' names need: in several real repositories it is another thing's total. */
const agrees = (files: ReadonlyArray<RepositoryFile>, index: WeightIndex, total: number): boolean => {
  const placed = { nameBytes: 0, tensors: 0 }
  for (const { nameBytes, tensors } of index.files.values()) {
    placed.nameBytes += nameBytes
    placed.tensors += tensors
  }
  return isHeader(files.reduce((sum, { size }) => sum + size - 8, 0) - total, placed, files.length)
}

/** What a file whose header was not read holds, by its names and its size; `agrees` tells whether its size leaves just the header that these tensors need. */
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
  // The size is a fact: what the header takes of it differs by a few bytes a tensor at most.
  const rest = Math.max(0, file.size - 8 - nameBytes - tensors * 110)
  const scale = bytes === 0 ? 0 : rest / bytes
  const scaled = groups.map((group) => ({ ...group, bytes: bytes === 0 ? Math.floor(rest / groups.length) : Math.floor(group.bytes * scale) }))
  return { groups: scaled, bytes: rest, agrees }
}

/**
 * Reads the headers of weight files: of all, or of as many as `left` allows. Which these are is chosen by what the index says they hold, so that each kind of tensor is
 * seen; then of those whose size does not agree with what their names let expect.
 */
export const readWeights = Effect.fnUntraced(function* (options: {
  readonly connection: HubConnection
  readonly urlOf: (file: RepositoryFile) => string
  readonly files: ReadonlyArray<RepositoryFile>
  readonly index: WeightIndex | null
  /** How many requests may still be made. */
  readonly left: () => number
}) {
  const { connection, files, index, urlOf } = options
  const names = index?.names ?? new TensorNames()
  const groups = new TensorGroups()
  const limit = maxHeadersBytes[options.left() === Number.POSITIVE_INFINITY ? "all" : "few"]
  const room: Room = { limit, left: limit }
  const byPath = new Map(files.map((file) => [file.path, file]))
  const left = new Set(byPath.keys())

  const guessOf = ({ path }: RepositoryFile) => {
    const placed = index?.files.get(path)
    return placed === undefined ? 0 : placed.nameBytes + placed.tensors * 160 + 4_096
  }

  const take = (file: RepositoryFile, number: number, header: Header) => {
    const placed = names.hold(header.names, number)
    if (placed === null) return new Unreadable({ reason: `${file.path} holds a tensor twice, or one that belongs to another file.` })
    if (placed < (index?.files.get(file.path)?.tensors ?? 0))
      return new Unreadable({ reason: `The index places tensors in ${file.path} which that file does not hold.` })
    groups.addAll(header.groups.values())
    return null
  }

  const read = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
    const chosen = paths.flatMap((path) => byPath.get(path) ?? [])
    const numbers = new Map(files.map(({ path }, at) => [path, index?.files.get(path)?.number ?? at + 1]))
    yield* Effect.forEach(
      chosen,
      (file) =>
        Effect.flatMap(readHeader(connection, urlOf(file), file, guessOf(file), room), (header) => {
          left.delete(file.path)
          const problem = take(file, numbers.get(file.path) ?? 0, header)
          return problem === null ? Effect.void : Effect.fail(problem)
        }),
      // Long ones one by one: what came of a file and was not read yet is held beside what was made of the others.
      { concurrency: chosen.some((file) => guessOf(file) > longHeader) ? 1 : parallelReads, discard: true }
    )
  })

  if (index === null || options.left() === Number.POSITIVE_INFINITY) yield* read([...left])
  else {
    // The first one shows how many requests each takes: the hub may send to elsewhere.
    const before = connection.sent()
    const [first = "", ...others] = telling(index, Math.max(1, options.left()))
    yield* read([first])
    const each = Math.max(1, connection.sent() - before)
    const mayRead = () => Math.max(0, Math.floor(options.left() / each))
    yield* read(left.size <= mayRead() ? [...left] : others.slice(0, mayRead()))
    const known = knownKinds(groups.values())
    const odd = [...left].filter((path) => {
      const [file, placed] = [byPath.get(path), index.files.get(path)]
      return file !== undefined && placed !== undefined && !infer(file, placed, known).agrees
    })
    yield* read(odd.slice(0, mayRead()))
  }

  const known = knownKinds(groups.values())
  const seen = [...groups.values()].map((group) => ({ ...group }))
  let bytes = groups.bytes
  let agree = true
  for (const path of left) {
    const [file, placed] = [byPath.get(path), index?.files.get(path)]
    if (file === undefined || placed === undefined) continue
    const inferred = infer(file, placed, known)
    bytes += inferred.bytes
    agree &&= inferred.agrees
    groups.addAll(inferred.groups)
  }
  if (!agree && index !== null && index.totalBytes !== null && agrees(files, index, index.totalBytes)) bytes = index.totalBytes
  if (groups.full) return yield* new Unreadable({ reason: "The repository has more kinds of tensors than any model." })
  if (groups.count === 0) return yield* new Unreadable({ reason: "The repository's safetensors files hold no tensor." })
  if (!Number.isSafeInteger(bytes)) return yield* new Unreadable({ reason: "The repository's weights are larger than any machine." })
  const weights: Weights = { groups: [...groups.values()], seen, bytes, whole: left.size === 0 }
  return weights
})
