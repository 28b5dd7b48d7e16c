import { open, readFile, rename, rm } from "node:fs/promises"

const maxBytes = 10_000_000

export interface ContainerLog {
  /** Resolves when the bytes are in the file. If the disk is full they are lost, but the process continues. */
  readonly write: (chunk: Buffer) => Promise<void>
  readonly close: () => Promise<void>
}

/**
 * Opens an empty log at `path` and moves the log of the previous run to `previous`. After 10 MB the log continues in a
 * new file, and the old one is kept as `.1`.
 */
export const openLog = async (path: string, previous: string): Promise<ContainerLog> => {
  await rm(`${path}.1`, { force: true })
  await rename(path, previous).catch(() => {})
  let file = await open(path, "w", 0o600)
  let size = 0
  let last = Promise.resolve()
  const append = async (chunk: Buffer) => {
    if (size > 0 && size + chunk.length > maxBytes) {
      await file.close()
      await rename(path, `${path}.1`)
      file = await open(path, "w", 0o600)
      size = 0
    }
    await file.write(chunk)
    size += chunk.length
  }
  const queue = (work: () => Promise<void>) => {
    last = last.then(work).catch(() => {})
    return last
  }
  return { write: (chunk) => queue(() => append(chunk)), close: () => queue(() => file.close()) }
}

const tail = (text: string, lines: number) => {
  const all = text.endsWith("\n") ? text.slice(0, -1).split("\n") : text.split("\n")
  return lines >= all.length ? text : lines <= 0 ? "" : `${all.slice(-lines).join("\n")}${text.endsWith("\n") ? "\n" : ""}`
}

/**
 * The log so far, including the rotated part, with at most its last `lines` lines; and the number of bytes of the file
 * that it covers.
 */
export const readLog = async (path: string, lines?: number): Promise<{ readonly text: string; readonly size: number }> => {
  const [older, newer] = await Promise.all([readFile(`${path}.1`, "utf8").catch(() => ""), readFile(path)])
  const text = older + newer.toString("utf8")
  return { text: lines === undefined ? text : tail(text, lines), size: newer.length }
}

/** The message that Kubernetes takes from the log of a failed container: its last 80 lines, at most 2 KiB. */
export const lastWords = async (path: string): Promise<string> => {
  const text = tail(
    await readLog(path).then(
      (read) => read.text,
      () => ""
    ),
    80
  )
  const bytes = Buffer.from(text)
  return bytes.length <= 2048
    ? text
    : bytes
        .subarray(bytes.length - 2048)
        .toString("utf8")
        .replace(/^�+/u, "")
}
