import type { RepositoryFile } from "@seatrial/domain"

const patterns = [
  /^config\.json$/,
  /^generation_config\.json$/,
  /^tokenizer[A-Za-z0-9_]*\.json$/,
  /^tokenizer\.model$/,
  /^special_tokens_map\.json$/,
  /^added_tokens\.json$/,
  /^vocab\.json$/,
  /^merges\.txt$/,
  /^chat_template\.(jinja|json)$/,
  /^(video_)?preprocessor_config\.json$/,
  /^hf_quant_config\.json$/,
  /^processor_config\.json$/,
  /^LICENSE[A-Za-z0-9._-]*$/
]
const forbidden = /\.(py|pyc|bin|pt|pth|pkl|pickle|ckpt|so|sh)$/i

export const weightsPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}\.safetensors$/
export const indexPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}\.safetensors\.index\.json$/

/** Whether a file may enter a model directory: never a file that an engine or Python could execute. */
export const isServingFile = (path: string): boolean =>
  !forbidden.test(path) && (weightsPattern.test(path) || indexPattern.test(path) || patterns.some((pattern) => pattern.test(path)))

/**
 * Whether a file may be downloaded. This includes an adapter's configuration, which never enters a model's directory,
 * because engines would apply it.
 */
export const isDownloaded = (path: string): boolean => path === "adapter_config.json" || isServingFile(path)

/** Whether a listed path stays within the repository and is valid on every file system. */
export const isPlainPath = (path: string): boolean =>
  path.length <= 1_000 && /^[^\p{Cc}\\]+$/u.test(path) && path.split("/").every((part) => part !== "" && part !== "." && part !== ".." && part !== ".git")

/**
 * Maximum size in bytes of a file other than weights, and of all such files together: several times the largest current
 * ones.
 */
const maxFileBytes = 128 * 1024 * 1024
const maxTotalBytes = 512 * 1024 * 1024

/**
 * Which of the files other than weights are too large, as a sentence; null if none is. Indexes have their own limit.
 */
export const tooLargeFiles = (files: ReadonlyArray<RepositoryFile>): string | null => {
  let together = 0
  for (const { path, size } of files) {
    if (weightsPattern.test(path) || indexPattern.test(path)) continue
    if (size > maxFileBytes) return `${path} is larger than ${maxFileBytes} bytes.`
    together += size
    if (together > maxTotalBytes) return `The files other than weights are larger than ${maxTotalBytes} bytes together.`
  }
  return null
}

/**
 * The weight files that engines load: the files of the index if there is one, otherwise `model.safetensors`, otherwise
 * every safetensors file in the folder of the configuration.
 */
export const chooseWeights = (
  files: ReadonlyMap<string, RepositoryFile>
): { readonly index: RepositoryFile | null; readonly single: ReadonlyArray<RepositoryFile> } => {
  const index = files.get("model.safetensors.index.json") ?? [...files.values()].find(({ path }) => indexPattern.test(path)) ?? null
  if (index !== null) return { index, single: [] }
  const single = files.get("model.safetensors")
  if (single !== undefined) return { index, single: [single] }
  // `consolidated` files hold the same weights again in the makers' own layout.
  return { index, single: [...files.values()].filter(({ path }) => weightsPattern.test(path) && !path.startsWith("consolidated")) }
}

/** The other weight formats in a repository, for a message. */
export const otherFormats = (paths: ReadonlyArray<string>): string => {
  const count = (pattern: RegExp) => paths.filter((path) => pattern.test(path)).length
  const pickles = count(/\.(bin|pt|pth|pkl|ckpt)$/i)
  const gguf = count(/\.gguf$/i)
  const otherName = paths.find((path) => path.endsWith(".safetensors"))
  if (otherName !== undefined) return `only safetensors files with other names than engines look for (${otherName.slice(0, 200)})`
  if (pickles > 0) return `only pickled weights (${pickles} ${pickles === 1 ? "file" : "files"}), which can run code when they are loaded`
  if (gguf > 0) return "only GGUF files"
  return "no weights in its outermost folder"
}
