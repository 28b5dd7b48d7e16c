import type { RepositoryFile } from "@seatrial/domain"
import { Effect, Result } from "effect"
import { parseJsonObject } from "./boundedJson.ts"
import { collect, verified } from "./contentHash.ts"
import { Unreadable } from "./failures.ts"
import type { HubConnection } from "./HubConnection.ts"
import type { Resolved } from "./resolve.ts"
import type { Sink } from "./safetensors.ts"

/** Maximum size of a configuration file in bytes. */
const maxConfigBytes = 4 * 1024 * 1024
/** Maximum length of a chat template in bytes. */
export const maxTemplateBytes = 1024 * 1024
/**
 * Maximum length in bytes of a chat template that is not in a separate file and so is passed to the engine as an
 * argument: Linux limits an argument to 128 KiB.
 */
const maxArgumentTemplate = 120_000
/** Maximum number of requests of a preview to the hub. */
export const previewRequests = 12

/** How much is read. `few`: a fixed number of requests for any number of weight files. `all`: every header. */
export type Depth = "few" | "all"

/** Refuses a chat template that is not in a separate file and is too long for an argument of the engine. */
export const checkArgumentTemplate = (template: string): Result.Result<void, Unreadable> => {
  const bytes = Buffer.byteLength(template)
  if (bytes <= maxArgumentTemplate) return Result.succeed(undefined)
  return Result.fail(
    new Unreadable({
      reason: `The chat template has ${bytes} bytes. Without a chat_template.jinja it is passed to the engine as an argument, which is limited to ${maxArgumentTemplate} bytes.`
    })
  )
}

/** Reads a complete small file of the commit into a sink and verifies it. */
export const readFile = <A>(
  connection: HubConnection,
  { commit, repo }: Pick<Resolved, "commit" | "repo">,
  file: RepositoryFile,
  limit: number,
  start: () => Sink<A>
) =>
  Effect.gen(function* () {
    if (file.size > limit) return yield* new Unreadable({ reason: `${file.path} is larger than ${limit} bytes.` })
    if (file.size === 0) return yield* new Unreadable({ reason: `${file.path} is empty.` })
    return yield* connection.readInto(connection.fileUrl(repo, commit, file.path), 0, file.size - 1, () => verified(file, start()))
  })

/** An object in a file of the root; empty if the repository has no such file. */
export const readJson = Effect.fnUntraced(function* (
  connection: HubConnection,
  resolved: Resolved,
  root: ReadonlyMap<string, RepositoryFile>,
  path: string
): Effect.fn.Return<Readonly<Record<PropertyKey, unknown>>, Effect.Error<ReturnType<typeof readFile>>> {
  const file = root.get(path)
  if (file === undefined) return {}
  const bytes = yield* readFile(connection, resolved, file, maxConfigBytes, () => collect(file.size))
  return yield* Effect.fromResult(parseJsonObject(bytes, path))
})
