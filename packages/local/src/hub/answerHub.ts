import { once } from "node:events"
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import { text } from "node:stream/consumers"
import { setTimeout } from "node:timers/promises"
import { Option, Schema } from "effect"
import type { HubFault, HubRequest } from "./HubFault.ts"
import { findCommit, type SampleCommit, type SampleFile, type SampleRepository } from "./SampleRepository.ts"
import { sendFile, sendSlowly } from "./sendFile.ts"

export interface HubContents {
  /** By lower-case name. */
  readonly repositories: ReadonlyMap<string, SampleRepository>
  readonly token: string
  readonly pageSize: number
  /** Milliseconds before each answer. */
  readonly latency: number
  readonly faults: (request: HubRequest) => HubFault | undefined
}

const madeAt = "2026-01-01T00:00:00.000Z"

const sendJson = (response: ServerResponse, value: unknown, fault: HubFault | undefined, headers: Readonly<Record<string, string>> = {}): void => {
  const body = Buffer.from(JSON.stringify(value))
  response.writeHead(200, { "content-type": "application/json; charset=utf-8", "content-length": body.length, ...headers })
  if (fault?.kind === "corrupt") body[fault.offset] = (body[fault.offset] ?? 0) ^ 0xff
  if (fault?.kind === "drip") sendSlowly(response, body, fault.every)
  else if (fault?.kind === "cut") response.write(body.subarray(0, fault.after), () => response.destroy())
  else if (fault?.kind === "stall") response.write(body.subarray(0, fault.after))
  else response.end(body)
}

const sendError = (response: ServerResponse, status: number, code: string | null, message: string): void => {
  const body = JSON.stringify({ error: message })
  response
    .writeHead(status, {
      "content-type": "application/json; charset=utf-8",
      "content-length": Buffer.byteLength(body),
      "x-error-message": message,
      ...(code === null ? {} : { "x-error-code": code })
    })
    .end(body)
}

const treeEntry = (file: SampleFile) => ({
  type: "file",
  oid: file.blobId,
  size: file.size,
  path: file.path,
  ...(file.lfs === null ? {} : { lfs: { oid: file.lfs.sha256, size: file.size, pointerSize: file.lfs.pointer.length } })
})

/** The files of a folder (`""` for the root); `recursive` includes subfolders. */
const listTree = (commit: SampleCommit, folder: string, recursive: boolean): ReadonlyArray<unknown> => {
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
const decodePathsInfo = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ paths: Schema.Array(Schema.String) })))

/** The part of `config.json` that the hub shows with a model. */
const modelConfig = (commit: SampleCommit): unknown => {
  const file = commit.files.find(({ path }) => path === "config.json")
  return Option.getOrElse(decodeConfig(Buffer.from(file?.head ?? []).toString()), () => ({}))
}

/** `blobs`: include size and hashes of each file. */
const modelInfo = (repository: SampleRepository, commit: SampleCommit, blobs: boolean) => ({
  _id: commit.id.slice(0, 24),
  id: repository.name,
  modelId: repository.name,
  author: repository.name.split("/")[0],
  sha: commit.id,
  createdAt: madeAt,
  lastModified: madeAt,
  private: repository.private,
  gated: repository.gated ? "manual" : false,
  disabled: false,
  downloads: 0,
  likes: 0,
  pipeline_tag: "text-generation",
  library_name: "transformers",
  tags: ["transformers", "safetensors", `license:${repository.license}`],
  cardData: { license: repository.license, library_name: "transformers", pipeline_tag: "text-generation" },
  config: modelConfig(commit),
  siblings: commit.files.map(({ blobId, lfs, path, size }) => ({
    rfilename: path,
    ...(blobs ? { blobId, size, ...(lfs === null ? {} : { lfs: { sha256: lfs.sha256, size, pointerSize: lfs.pointer.length } }) } : {})
  }))
})

const decodePath = (path: string): string => {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

const landing = (repositories: Iterable<SampleRepository>): string =>
  `This is Seatrial's sample hub. Its repositories are simulated: they are made from a fixed seed when it starts, for trying and testing without a connection.\n\n${[
    ...repositories
  ]
    .filter((repository) => !repository.private)
    .map((repository) => `${repository.name}  ${repository.commits[0].id}${repository.gated ? "  gated" : ""}`)
    .join("\n")}\n`

/** The HTTP interface of the hub for these contents, for `node:http`. */
export const answerHub = (contents: HubContents): RequestListener => {
  const counts = new Map<string, number>()

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (contents.latency > 0) await setTimeout(contents.latency)
    const url = new URL(request.url ?? "/", "http://hub.invalid")
    const method = request.method ?? "GET"
    const resolved = /^\/(?<name>[^/]+\/[^/]+)\/(?<way>resolve|raw)\/(?<revision>[^/]+)\/(?<path>.+)$/.exec(url.pathname)?.groups
    const called = /^\/api\/models\/([^/]+\/[^/]+)(?:\/(revision|tree|paths-info|refs|commits)(?:\/([^/]+)(?:\/(.+))?)?)?$/.exec(url.pathname)
    const file = resolved?.path === undefined ? null : decodePath(resolved.path)

    const count = (counts.get(`${method} ${url.pathname}`) ?? 0) + 1
    counts.set(`${method} ${url.pathname}`, count)
    const fault = contents.faults({ method, path: url.pathname, file, range: request.headers.range ?? null, count })
    if (fault?.kind === "status") {
      response.writeHead(fault.status, fault.headers).end()
      return
    }
    if (fault?.kind === "reset") {
      request.socket.destroy()
      return
    }
    if (fault?.kind === "body") {
      response.writeHead(200, fault.headers).end(fault.body)
      return
    }
    if (fault?.kind === "endless") {
      response.writeHead(200)
      const spaces = Buffer.alloc(64 * 1024, " ")
      while (!response.destroyed) if (!response.write(spaces)) await Promise.race([once(response, "drain"), once(response, "close")])
      return
    }

    if (url.pathname === "/") {
      response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end(landing(contents.repositories.values()))
      return
    }
    const sent = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1]
    const trusted = sent === contents.token
    if (url.pathname === "/api/whoami-v2") {
      if (trusted) sendJson(response, { type: "user", name: "sample", fullname: "Sample user", orgs: [] }, fault)
      else sendError(response, 401, null, "Invalid credentials in Authorization header")
      return
    }
    const repository = contents.repositories.get(decodePath(resolved?.name ?? called?.[1] ?? "").toLowerCase())
    if (repository === undefined || (repository.private && !trusted)) return sendError(response, 404, "RepoNotFound", "Repository not found")

    const kind = called?.[2]
    if (kind === "refs") {
      const refs = {
        branches: [{ name: "main", ref: "refs/heads/main", targetCommit: repository.commits[0].id }],
        tags: [...repository.tags].map(([name, id]) => ({ name, ref: `refs/tags/${name}`, targetCommit: id })),
        converts: []
      }
      sendJson(response, refs, fault)
      return
    }
    const revision = decodePath(resolved?.revision ?? called?.[3] ?? "main")
    const commit = findCommit(repository, revision)
    if (commit === undefined) return sendError(response, 404, "RevisionNotFound", `Invalid rev id: ${revision.slice(0, 200)}`)

    if (file !== null) {
      if (repository.gated && !trusted) {
        const message = `Access to model ${repository.name} is restricted.`
        return sendError(response, sent === undefined ? 401 : 403, "GatedRepo", message)
      }
      const entry = commit.files.find(({ path }) => path === file)
      if (entry === undefined) return sendError(response, 404, "EntryNotFound", "Entry not found")
      // `raw` returns what git stores: for a file in LFS its pointer.
      const pointer = resolved?.way === "raw" ? entry.lfs?.pointer : undefined
      const content = pointer === undefined ? entry : { ...entry, head: pointer, size: pointer.length, lfs: null }
      return sendFile(request, response, { commit: commit.id, file: content, fault })
    }
    switch (kind) {
      case undefined:
      case "revision":
        return sendJson(response, modelInfo(repository, commit, url.searchParams.get("blobs")?.toLowerCase() === "true"), fault)
      case "commits":
        return sendJson(
          response,
          repository.commits.slice(repository.commits.indexOf(commit)).map(({ id, title }) => ({ id, title, message: "", authors: [], date: madeAt })),
          fault
        )
      case "tree": {
        const entries = listTree(commit, decodePath(called?.[4] ?? ""), url.searchParams.get("recursive")?.toLowerCase() === "true")
        const from = Number(url.searchParams.get("cursor") ?? "0")
        const next = new URL(url.pathname + url.search, `http://${request.headers.host ?? ""}`)
        next.searchParams.set("cursor", String(from + contents.pageSize))
        const more = from + contents.pageSize < entries.length
        return sendJson(response, entries.slice(from, from + contents.pageSize), fault, more ? { link: `<${next.href}>; rel="next"` } : {})
      }
      case "paths-info": {
        const body = await text(request)
        // The Python client sends a form, the JavaScript client sends JSON.
        const json = Option.map(decodePathsInfo(body), ({ paths }) => paths)
        const paths = new Set(Option.getOrElse(json, () => new URLSearchParams(body).getAll("paths")))
        return sendJson(response, commit.files.filter(({ path }) => paths.has(path)).map(treeEntry), fault)
      }
      default:
        return sendError(response, 404, null, "Not found")
    }
  }

  return (request, response) => {
    answer(request, response).catch(() => response.destroy())
  }
}
