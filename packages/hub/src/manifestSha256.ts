import { createHash } from "node:crypto"
import type { RepositoryFile } from "@seatrial/domain"

/**
 * SHA-256 (lower-case hex) of the canonical JSON of a commit's files in path order. It lets a download check that it
 * has the list that was screened.
 */
export const manifestSha256 = (files: ReadonlyArray<RepositoryFile>): string => {
  const canonical = files
    .map(({ blob_id, path, sha256, size }) => ({ blob_id, path, sha256, size }))
    .sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
  return createHash("sha256").update(JSON.stringify(canonical)).digest("hex")
}
