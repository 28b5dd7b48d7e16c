import type { RepositoryFile } from "@seatrial/domain"

const kept = [
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
const neverKept = /\.(py|pyc|bin|pt|pth|pkl|pickle|ckpt|so|sh)$/i

export const weightsPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}\.safetensors$/
export const indexPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}\.safetensors\.index\.json$/

/** Whether a file may reach a model directory: never anything that an engine or Python could run. */
export const isServingFile = (path: string): boolean =>
  !neverKept.test(path) && (weightsPattern.test(path) || indexPattern.test(path) || kept.some((pattern) => pattern.test(path)))

/** Whether a file may be downloaded: an adapter's configuration too, which never lies beside a model, where engines would apply what it describes. */
export const isDownloaded = (path: string): boolean => path === "adapter_config.json" || isServingFile(path)

/** Whether a listed path stays within the repository and has a form that every file system takes. */
export const isPlainPath = (path: string): boolean =>
  path.length <= 1_000 && /^[^\p{Cc}\\]+$/u.test(path) && path.split("/").every((part) => part !== "" && part !== "." && part !== ".." && part !== ".git")

/** Longest that a file beside the weights may be, and all of them together, in bytes: several times the largest of today. */
const maxBeside = 128 * 1024 * 1024
const maxBesideTogether = 512 * 1024 * 1024

/** What is too large of the files that would be downloaded beside the weights, in a sentence; null where nothing is. Indexes have a limit of their own. */
export const tooLargeBeside = (files: ReadonlyArray<RepositoryFile>): string | null => {
  let together = 0
  for (const { path, size } of files) {
    if (weightsPattern.test(path) || indexPattern.test(path)) continue
    if (size > maxBeside) return `${path} is larger than ${maxBeside} bytes.`
    together += size
    if (together > maxBesideTogether) return `The files beside the weights are larger than ${maxBesideTogether} bytes together.`
  }
  return null
}

/** The weight files that engines load: those of the index where there is one, else `model.safetensors`, else every file beside the configuration. */
export const chooseWeights = (
  files: ReadonlyMap<string, RepositoryFile>
): { readonly index: RepositoryFile | null; readonly single: ReadonlyArray<RepositoryFile> } => {
  const index = files.get("model.safetensors.index.json") ?? [...files.values()].find(({ path }) => indexPattern.test(path)) ?? null
  if (index !== null) return { index, single: [] }
  const whole = files.get("model.safetensors")
  if (whole !== undefined) return { index, single: [whole] }
  // `consolidated` files hold the same weights once more, in the layout of the model's makers.
  return { index, single: [...files.values()].filter(({ path }) => weightsPattern.test(path) && !path.startsWith("consolidated")) }
}

/** What the repository offers instead of safetensors, for a message. */
export const otherFormats = (paths: ReadonlyArray<string>): string => {
  const count = (pattern: RegExp) => paths.filter((path) => pattern.test(path)).length
  const pickles = count(/\.(bin|pt|pth|pkl|ckpt)$/i)
  const gguf = count(/\.gguf$/i)
  const named = paths.find((path) => path.endsWith(".safetensors"))
  if (named !== undefined) return `only safetensors files with other names than engines look for (${named.slice(0, 200)})`
  if (pickles > 0) return `only pickled weights (${pickles} ${pickles === 1 ? "file" : "files"}), which can run code when they are loaded`
  if (gguf > 0) return "only GGUF files"
  return "no weights in its outermost folder"
}
