import { createHash, type Hash } from "node:crypto"
import type { RepositoryFile } from "@seatrial/domain"

/** A running hash of a file's content as its commit names it: SHA-256 for files in LFS, else git's blob id. */
export const startHash = (file: RepositoryFile): Hash => (file.sha256 !== null ? createHash("sha256") : createHash("sha1").update(`blob ${file.size}\0`))

/** The hash that the content of a file must have. */
export const expectedHash = (file: RepositoryFile): string => file.sha256 ?? file.blob_id

export const matchesCommit = (content: Uint8Array, file: RepositoryFile): boolean => startHash(file).update(content).digest("hex") === expectedHash(file)
