import { Option, Schema } from "effect"
import type { SampleCommit, SampleFile, SampleRepository } from "./SampleRepository.ts"

export const recordTime = "2026-01-01T00:00:00.000Z"

export const treeEntry = (file: SampleFile) => ({
  type: "file",
  oid: file.blobId,
  size: file.size,
  path: file.path,
  ...(file.lfs === null ? {} : { lfs: { oid: file.lfs.sha256, size: file.size, pointerSize: file.lfs.pointer.length } })
})

/** The files of a folder (`""` for the root); `recursive` includes subfolders. */
export const listTree = (commit: SampleCommit, folder: string, recursive: boolean): ReadonlyArray<unknown> => {
  const prefix = folder === "" ? "" : `${folder}/`
  const folders = new Set<string>()
  const entries: Array<unknown> = []
  for (const file of commit.files) {
    if (!file.path.startsWith(prefix)) continue
    const slash = file.path.indexOf("/", prefix.length)
    if (recursive || slash === -1) entries.push(treeEntry(file))
    else folders.add(file.path.slice(0, slash))
  }
  return [...[...folders].map((path) => ({ type: "directory", oid: "0".repeat(40), size: 0, path })), ...entries]
}

const decodeConfig = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ architectures: Schema.optionalKey(Schema.Json), model_type: Schema.optionalKey(Schema.Json) }))
)

/** The part of `config.json` that the hub shows with a model. */
const modelConfig = (commit: SampleCommit): unknown => {
  const file = commit.files.find(({ path }) => path === "config.json")
  return Option.getOrElse(decodeConfig(Buffer.from(file?.head ?? []).toString()), () => ({}))
}

/** `blobs`: include size and hashes of each file. */
export const modelInfo = (repository: SampleRepository, commit: SampleCommit, blobs: boolean) => ({
  _id: commit.id.slice(0, 24),
  id: repository.name,
  modelId: repository.name,
  author: repository.name.split("/")[0],
  sha: commit.id,
  createdAt: recordTime,
  lastModified: recordTime,
  private: repository.private,
  gated: repository.gated ? "manual" : false,
  disabled: false,
  downloads: 0,
  likes: 0,
  pipeline_tag: "text-generation",
  library_name: "transformers",
  tags: ["transformers", "safetensors", ...(repository.license === null ? [] : [`license:${repository.license}`])],
  cardData: { ...(repository.license === null ? {} : { license: repository.license }), library_name: "transformers", pipeline_tag: "text-generation" },
  config: modelConfig(commit),
  siblings: commit.files.map(({ blobId, lfs, path, size }) => ({
    rfilename: path,
    ...(blobs ? { blobId, size, ...(lfs === null ? {} : { lfs: { sha256: lfs.sha256, size, pointerSize: lfs.pointer.length } }) } : {})
  }))
})

export const landing = (repositories: Iterable<SampleRepository>): string => {
  const shown = [...repositories].filter((repository) => !repository.private)
  const lines = shown.map((repository) => `${repository.name}  ${repository.commits[0].id}${repository.gated ? "  gated" : ""}`)
  return `This is Seatrial's sample hub. Its samples (seatrial/...) are simulated: they are made from a fixed seed when it starts, for trying and testing without a connection. Other repositories are folders of --hub-folder.\n\n${lines.join("\n")}\n`
}
