import { createHash } from "node:crypto"
import type { RepositoryFile } from "@seatrial/domain"

/** SHA-256 (lower-case hex) over the canonical JSON of a commit's files, in path order: what screening saw, so that a download can tell that it sees the same. */
export const manifestSha256 = (files: ReadonlyArray<RepositoryFile>): string => {
  const canonical = files
    .map(({ blob_id, path, sha256, size }) => ({ blob_id, path, sha256, size }))
    .sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
  return createHash("sha256").update(JSON.stringify(canonical)).digest("hex")
}
