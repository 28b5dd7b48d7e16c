import { createHash, type Hash } from "node:crypto"
import type { RepositoryFile } from "@seatrial/domain"
import { HubUnavailable } from "./failures.ts"
import type { Sink } from "./safetensors.ts"

/** A running hash of a file's content in the form of its commit: SHA-256 for files in LFS, otherwise git's blob id. */
export const startHash = (file: RepositoryFile): Hash => (file.sha256 !== null ? createHash("sha256") : createHash("sha1").update(`blob ${file.size}\0`))

/** The expected hash of a file's content. */
export const expectedHash = (file: RepositoryFile): string => file.sha256 ?? file.blob_id

/**
 * A sink that reports content errors only after all requested bytes have arrived. A truncated or replaced response is
 * the hub's fault.
 */
export const readToEnd = <A>(sink: Sink<A>): Sink<A> => {
  let problem: { readonly error: unknown } | null = null
  return {
    push: (chunk) => {
      if (problem !== null) return
      try {
        sink.push(chunk)
      } catch (error) {
        problem = { error }
      }
    },
    end: () => {
      if (problem !== null) throw problem.error
      return sink.end()
    }
  }
}

/**
 * A sink for a complete file that first verifies the hash. Only then may a content error be attributed to the
 * repository.
 */
export const verified = <A>(file: RepositoryFile, sink: Sink<A>): Sink<A> => {
  const hash = startHash(file)
  const complete = readToEnd(sink)
  return {
    push: (chunk) => {
      hash.update(chunk)
      complete.push(chunk)
    },
    end: () => {
      if (hash.digest("hex") !== expectedHash(file))
        throw new HubUnavailable({ message: `The model hub returned a ${file.path} that differs from the commit.` })
      return complete.end()
    }
  }
}

/** Collects `size` bytes. */
export const collect = (size: number): Sink<Uint8Array> => {
  const bytes = new Uint8Array(size)
  let filled = 0
  return {
    push: (chunk) => {
      bytes.set(chunk, filled)
      filled += chunk.length
    },
    end: () => bytes
  }
}
