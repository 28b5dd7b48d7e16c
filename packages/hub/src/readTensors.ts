import type { Commit, RepositoryFile, TensorPrefix } from "@seatrial/domain"
import { Effect, Option, type Redacted, Schema } from "effect"
import { collect } from "./contentHash.ts"
import { HubUnavailable } from "./failures.ts"
import { connect, type HubConnection } from "./HubConnection.ts"
import type { HubSettings } from "./HubSettings.ts"
import { readFile } from "./readFile.ts"
import { headerLength } from "./safetensors.ts"
import { chooseWeights } from "./servingFiles.ts"
import { maxIndexBytes } from "./weightIndex.ts"

/** First values of tensors of a pinned commit, whose weight files were screened before. */
export interface WantedTensors {
  readonly repo: string
  readonly commit: Commit
  readonly files: ReadonlyArray<RepositoryFile>
  readonly names: ReadonlyArray<string>
  /** Maximum number of values per tensor. */
  readonly values: number
  readonly token: Option.Option<Redacted.Redacted<string>>
}

/** Size of the first read of a weight file. It contains the complete header of nearly every shard. */
const firstRead = 128 * 1024
const widths: Readonly<Record<string, number>> = { F32: 4, BF16: 2, F16: 2 }

const Entry = Schema.Struct({ dtype: Schema.String, shape: Schema.Array(Schema.Int), data_offsets: Schema.Tuple([Schema.Int, Schema.Int]) })
const decodeEntry = Schema.decodeUnknownOption(Schema.fromJsonString(Entry))

/**
 * The value after a name in a JSON text. Headers and indexes have megabytes of other members, so they are not parsed.
 */
const behind = (text: string, name: string, form: string): string | undefined =>
  new RegExp(`(?<!\\\\)"${name.replaceAll(".", "\\.")}"\\s*:\\s*(${form})`).exec(text)?.[1]

const textOf = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")

/**
 * The first values of the requested tensors in a weight file: one request for the start of the file, and one for each
 * tensor beyond it.
 */
const readFrom = Effect.fnUntraced(function* (
  connection: HubConnection,
  url: string,
  { path, size }: RepositoryFile,
  { names, values }: Pick<WantedTensors, "names" | "values">
) {
  const first = yield* connection.readInto(url, 0, Math.min(size, firstRead) - 1, () => collect(Math.min(size, firstRead)))
  const range = (from: number, to: number) =>
    to <= first.length ? Effect.succeed(first.slice(from, to)) : connection.readInto(url, from, to - 1, () => collect(to - from))
  const length = yield* Effect.fromResult(headerLength(first, size, path))
  const header = textOf(yield* range(8, 8 + length))
  const prefixes: Array<TensorPrefix> = []
  for (const name of names) {
    const entry = Option.getOrNull(decodeEntry(behind(header, name, "\\{[^{}]*\\}")))
    const width = entry === null ? undefined : widths[entry.dtype]
    if (entry === null || width === undefined) continue
    const { data_offsets, dtype, shape } = entry
    const from = 8 + length + data_offsets[0]
    const to = Math.min(from + values * width, 8 + length + data_offsets[1], size)
    if (to > from) prefixes.push({ name, dtype, shape, bytes: yield* range(from, to) })
  }
  return prefixes
})

/** The service's `readTensors`. */
export const readTensors = (settings: HubSettings) =>
  Effect.fn("Hub.readTensors")(
    function* (wanted: WantedTensors) {
      const { commit, files, names, repo, token } = wanted
      const connection = connect(settings, token)
      const { index, single } = chooseWeights(new Map(files.map((file) => [file.path, file])))
      const places = index === null ? "" : textOf(yield* readFile(connection, { repo, commit }, index, maxIndexBytes, () => collect(index.size)))
      const placed = new Set(names.flatMap((name) => behind(places, name, '"[^"\\\\]*"')?.slice(1, -1) ?? []))
      const holding = index === null ? single : files.filter(({ path }) => placed.has(path))
      const prefixes: Array<TensorPrefix> = []
      for (const file of holding) if (file.size > 0) prefixes.push(...(yield* readFrom(connection, connection.fileUrl(repo, commit, file.path), file, wanted)))
      return prefixes
    },
    (effect) =>
      effect.pipe(
        Effect.catchTags({
          HubAnswer: ({ status }) => Effect.fail(new HubUnavailable({ message: `The model hub no longer provides the commit's weights (status ${status}).` })),
          Unreadable: ({ reason }) => Effect.fail(new HubUnavailable({ message: reason }))
        })
      )
  )
