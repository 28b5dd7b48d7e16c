import type { Commit, RepositoryFile } from "@seatrial/domain"
import { Effect, type Option, type Redacted } from "effect"
import { collect } from "./contentHash.ts"
import { HubUnavailable } from "./failures.ts"
import { connect } from "./HubConnection.ts"
import type { HubSettings } from "./HubSettings.ts"
import { readFile } from "./readFile.ts"

/** Files of a pinned commit that are small enough to hold in memory. */
export interface SmallFiles {
  readonly repo: string
  readonly commit: Commit
  readonly files: ReadonlyArray<RepositoryFile>
  /** Maximum size of a file in bytes. */
  readonly limit: number
  readonly token: Option.Option<Redacted.Redacted<string>>
}

/** The service's `readSmall`. It reads one file at a time, because each may be as large as the limit. */
export const readSmall = (settings: HubSettings) =>
  Effect.fn("Hub.readSmall")(function* ({ commit, files, limit, repo, token }: SmallFiles) {
    const connection = connect(settings, token)
    const contents = new Map<string, Uint8Array>()
    for (const file of files) {
      if (file.size === 0 || file.size > limit) continue
      const bytes = yield* readFile(connection, { repo, commit }, file, limit, () => collect(file.size)).pipe(
        Effect.catchTags({
          HubAnswer: ({ status }) => new HubUnavailable({ message: `The model hub no longer provides ${file.path} of the commit (status ${status}).` }),
          Unreadable: ({ reason }) => new HubUnavailable({ message: reason })
        })
      )
      contents.set(file.path, bytes)
    }
    const read: ReadonlyMap<string, Uint8Array> = contents
    return read
  })
