import { createHash, type Hash } from "node:crypto"
import type { RepositoryFile } from "@seatrial/domain"
import { HubUnavailable } from "./failures.ts"
import type { Sink } from "./safetensors.ts"

/** A running hash of a file's content as its commit names it: SHA-256 for files in LFS, else git's blob id. */
export const startHash = (file: RepositoryFile): Hash => (file.sha256 !== null ? createHash("sha256") : createHash("sha1").update(`blob ${file.size}\0`))

/** The hash that the content of a file must have. */
export const expectedHash = (file: RepositoryFile): string => file.sha256 ?? file.blob_id

/** A sink that is not blamed for anything before all that was asked for has come: what breaks off, or is another page in its place, is the hub's fault. */
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

/** A sink for a whole file that first makes sure that what came is the commit's: only then may the repository be blamed for what is in it. */
export const verified = <A>(file: RepositoryFile, sink: Sink<A>): Sink<A> => {
  const hash = startHash(file)
  const whole = readToEnd(sink)
  return {
    push: (chunk) => {
      hash.update(chunk)
      whole.push(chunk)
    },
    end: () => {
      if (hash.digest("hex") !== expectedHash(file)) throw new HubUnavailable({ message: `The model hub sends a ${file.path} that differs from the commit.` })
      return whole.end()
    }
  }
}

/** All bytes together, of which there are `size`. */
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
