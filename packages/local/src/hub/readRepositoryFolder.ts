import type { Dirent } from "node:fs"
import { readdir, readFile, realpath, stat } from "node:fs/promises"
import { join, relative, sep } from "node:path"
import { type DiskFile, diskFile, hashFile } from "./DiskFile.ts"
import { HubFolderError } from "./HubFolderError.ts"
import { isLargeFile, type StoredContent } from "./SampleRepository.ts"

/** The place of a repository: its folder, and the hub folder that its links may not leave. */
export interface RepositoryFolder {
  readonly root: string
  readonly path: string
}

const isInside = (root: string, path: string): boolean => path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`)

const requireFile = async ({ root }: RepositoryFolder, path: string): Promise<DiskFile> => {
  const target = await realpath(path).catch(() => null)
  if (target === null) throw new HubFolderError({ message: `${path} is a link to a file that does not exist. Replace it by the file.` })
  if (!isInside(root, target))
    throw new HubFolderError({ message: `${path} is a link to a file outside of ${root}. Seatrial does not follow it: copy the file into the folder.` })
  const stats = await stat(target)
  if (!stats.isFile()) throw new HubFolderError({ message: `${path} is not a regular file. Remove it, or replace it by a file.` })
  return diskFile(target, stats)
}

/** The files below a folder, by path. Names that begin with a dot are left out: they belong to tools such as git. */
const listFiles = async (folder: RepositoryFolder, path: string): Promise<ReadonlyArray<readonly [path: string, file: DiskFile]>> => {
  const entries: ReadonlyArray<Dirent> = await readdir(path, { withFileTypes: true })
  const files: Array<readonly [string, DiskFile]> = []
  for (const entry of entries.filter(({ name }) => !name.startsWith("."))) {
    const entryPath = join(path, entry.name)
    if (entry.isDirectory()) files.push(...(await listFiles(folder, entryPath)))
    else files.push([relative(folder.path, entryPath).replaceAll(sep, "/"), await requireFile(folder, entryPath)])
  }
  return files
}

const readContent = async (path: string, file: DiskFile): Promise<StoredContent | Uint8Array> => {
  if (!isLargeFile(path, file.size)) return readFile(file.path)
  const sha256 = await hashFile(file)
  if (sha256 === null) throw new HubFolderError({ message: `${file.path} was changed while Seatrial read it. Start again when it is complete.` })
  return { head: new Uint8Array(), size: file.size, disk: file, sha256 }
}

/** The files of a repository in a folder. Large files are hashed and stay on disk. Throws `HubFolderError`. */
export const readRepositoryFolder = async (folder: RepositoryFolder): Promise<Readonly<Record<string, StoredContent | Uint8Array>>> => {
  const files = await listFiles(folder, folder.path)
  if (!files.some(([path]) => path === "config.json" || path === "adapter_config.json")) {
    throw new HubFolderError({
      message: `${folder.path} is not a model: it has no config.json. Put the files of a model repository there, or move the folder out of ${folder.root}.`
    })
  }
  const contents: Record<string, StoredContent | Uint8Array> = {}
  for (const [path, file] of files) contents[path] = await readContent(path, file)
  return contents
}
