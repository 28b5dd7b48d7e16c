import { once } from "node:events"
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import { text } from "node:stream/consumers"
import { setTimeout } from "node:timers/promises"
import { Option, Schema } from "effect"
import type { HubFault, HubRequest } from "./HubFault.ts"
import { landing, listTree, modelInfo, recordTime, treeEntry } from "./hubRecords.ts"
import { findCommit, type SampleCommit, type SampleRepository } from "./SampleRepository.ts"
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

const decodePathsInfo = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ paths: Schema.Array(Schema.String) })))

const decodePath = (path: string): string => {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** The parts of a path. */
interface HubRoute {
  /** In lower case; empty if the path belongs to no repository. */
  readonly repository: string
  readonly revision: string
  /** The path of the file to download; null for a call of the API. */
  readonly file: string | null
  /** Whether the caller wants the file as git stores it: for a file in LFS its pointer. */
  readonly isRaw: boolean
  /** What the call of the API returns; undefined for the model itself. */
  readonly record: string | undefined
  /** The folder to list. */
  readonly folder: string
}

const filePath = /^\/(?<name>[^/]+\/[^/]+)\/(?<way>resolve|raw)\/(?<revision>[^/]+)\/(?<path>.+)$/
const apiPath = /^\/api\/models\/([^/]+\/[^/]+)(?:\/(revision|tree|paths-info|refs|commits)(?:\/([^/]+)(?:\/(.+))?)?)?$/

const fileRoute = (groups: Readonly<Record<string, string | undefined>>): HubRoute => ({
  repository: decodePath(groups.name ?? "").toLowerCase(),
  revision: decodePath(groups.revision ?? ""),
  file: decodePath(groups.path ?? ""),
  isRaw: groups.way === "raw",
  record: undefined,
  folder: ""
})

const readRoute = (pathname: string): HubRoute => {
  const groups = filePath.exec(pathname)?.groups
  if (groups !== undefined) return fileRoute(groups)
  const [, name = "", record, revision = "main", folder = ""] = apiPath.exec(pathname) ?? []
  return {
    repository: decodePath(name).toLowerCase(),
    revision: decodePath(revision),
    file: null,
    isRaw: false,
    record,
    folder: decodePath(folder)
  }
}

/** One request and what its answer depends on. */
interface HubCall {
  readonly contents: HubContents
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly url: URL
  readonly route: HubRoute
  readonly fault: HubFault | undefined
  /** The token that the caller sent. */
  readonly token: string | undefined
  readonly isTrusted: boolean
}

interface CommitCall extends HubCall {
  readonly repository: SampleRepository
  readonly commit: SampleCommit
}

const sendEndlessly = async (response: ServerResponse): Promise<void> => {
  response.writeHead(200)
  const spaces = Buffer.alloc(64 * 1024, " ")
  while (!response.destroyed) if (!response.write(spaces)) await Promise.race([once(response, "drain"), once(response, "close")])
}

/** Answers with the fault alone if it replaces the answer; returns whether it does. */
const answerFault = async (request: IncomingMessage, response: ServerResponse, fault: HubFault | undefined): Promise<boolean> => {
  switch (fault?.kind) {
    case "status":
      response.writeHead(fault.status, fault.headers).end()
      return true
    case "reset":
      request.socket.destroy()
      return true
    case "body":
      response.writeHead(200, fault.headers).end(fault.body)
      return true
    case "endless":
      await sendEndlessly(response)
      return true
    default:
      return false
  }
}

const answerLanding = ({ contents, response }: HubCall): void => {
  response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end(landing(contents.repositories.values()))
}

const answerWhoAmI = ({ fault, isTrusted, response }: HubCall): void =>
  isTrusted
    ? sendJson(response, { type: "user", name: "sample", fullname: "Sample user", orgs: [] }, fault)
    : sendError(response, 401, null, "Invalid credentials in Authorization header")

const answerRefs = ({ fault, response }: HubCall, repository: SampleRepository): void => {
  const refs = {
    branches: [{ name: "main", ref: "refs/heads/main", targetCommit: repository.commits[0].id }],
    tags: [...repository.tags].map(([name, id]) => ({ name, ref: `refs/tags/${name}`, targetCommit: id })),
    converts: []
  }
  sendJson(response, refs, fault)
}

const answerFile = (call: CommitCall, path: string): Promise<void> | void => {
  const { commit, fault, isTrusted, repository, request, response, route, token } = call
  if (repository.gated && !isTrusted) {
    const message = `Access to model ${repository.name} is restricted.`
    return sendError(response, token === undefined ? 401 : 403, "GatedRepo", message)
  }
  const entry = commit.files.find((file) => file.path === path)
  if (entry === undefined) return sendError(response, 404, "EntryNotFound", "Entry not found")
  const pointer = route.isRaw ? entry.lfs?.pointer : undefined
  const file = pointer === undefined ? entry : { ...entry, head: pointer, size: pointer.length, lfs: null }
  return sendFile(request, response, { commit: commit.id, file, fault })
}

const isSet = (url: URL, parameter: string): boolean => url.searchParams.get(parameter)?.toLowerCase() === "true"

const answerModel = ({ commit, fault, repository, response, url }: CommitCall): void =>
  sendJson(response, modelInfo(repository, commit, isSet(url, "blobs")), fault)

const answerCommits = ({ commit, fault, repository, response }: CommitCall): void => {
  const commits = repository.commits.slice(repository.commits.indexOf(commit))
  sendJson(
    response,
    commits.map(({ id, title }) => ({ id, title, message: "", authors: [], date: recordTime })),
    fault
  )
}

const answerTree = ({ commit, contents, fault, request, response, route, url }: CommitCall): void => {
  const entries = listTree(commit, route.folder, isSet(url, "recursive"))
  const from = Number(url.searchParams.get("cursor") ?? "0")
  const to = from + contents.pageSize
  const next = new URL(url.pathname + url.search, `http://${request.headers.host ?? ""}`)
  next.searchParams.set("cursor", String(to))
  sendJson(response, entries.slice(from, to), fault, to < entries.length ? { link: `<${next.href}>; rel="next"` } : {})
}

const answerPathsInfo = async ({ commit, fault, request, response }: CommitCall): Promise<void> => {
  const body = await text(request)
  // The Python client sends a form, the JavaScript client sends JSON.
  const json = Option.map(decodePathsInfo(body), ({ paths }) => paths)
  const paths = new Set(Option.getOrElse(json, () => new URLSearchParams(body).getAll("paths")))
  sendJson(response, commit.files.filter(({ path }) => paths.has(path)).map(treeEntry), fault)
}

const answerRecord = (call: CommitCall): Promise<void> | void => {
  switch (call.route.record) {
    case undefined:
    case "revision":
      return answerModel(call)
    case "commits":
      return answerCommits(call)
    case "tree":
      return answerTree(call)
    case "paths-info":
      return answerPathsInfo(call)
    default:
      return sendError(call.response, 404, null, "Not found")
  }
}

const answerRepository = (call: HubCall): Promise<void> | void => {
  const { contents, isTrusted, response, route } = call
  const repository = contents.repositories.get(route.repository)
  if (repository === undefined || (repository.private && !isTrusted)) return sendError(response, 404, "RepoNotFound", "Repository not found")
  if (route.record === "refs") return answerRefs(call, repository)
  const commit = findCommit(repository, route.revision)
  if (commit === undefined) return sendError(response, 404, "RevisionNotFound", `Invalid rev id: ${route.revision.slice(0, 200)}`)
  const commitCall = { ...call, repository, commit }
  return route.file === null ? answerRecord(commitCall) : answerFile(commitCall, route.file)
}

const answerCall = (call: HubCall): Promise<void> | void => {
  if (call.url.pathname === "/") return answerLanding(call)
  return call.url.pathname === "/api/whoami-v2" ? answerWhoAmI(call) : answerRepository(call)
}

/** The HTTP interface of the hub for these contents, for `node:http`. */
export const answerHub = (contents: HubContents): RequestListener => {
  const counts = new Map<string, number>()

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (contents.latency > 0) await setTimeout(contents.latency)
    const url = new URL(request.url ?? "/", "http://hub.invalid")
    const method = request.method ?? "GET"
    const route = readRoute(url.pathname)
    const endpoint = `${method} ${url.pathname}`
    const count = (counts.get(endpoint) ?? 0) + 1
    counts.set(endpoint, count)
    const fault = contents.faults({ method, path: url.pathname, file: route.file, range: request.headers.range ?? null, count })
    if (await answerFault(request, response, fault)) return
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1]
    await answerCall({ contents, request, response, url, route, fault, token, isTrusted: token === contents.token })
  }

  return (request, response) => {
    answer(request, response).catch(() => response.destroy())
  }
}
