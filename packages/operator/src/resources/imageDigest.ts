/** `repo@sha256:...`: what follows the `@`. */
const digestIn = (reference: string): string | null => /@([a-z0-9]+:[0-9a-f]{32,})$/u.exec(reference)?.[1] ?? null

const untagged = (reference: string): string => reference.replace(/@[^@]*$/u, "").replace(/:[^/:]*$/u, "")

/** An image's name in full, without tag and digest: `vllm/vllm-openai:v1` is of `docker.io/vllm/vllm-openai`. */
const repositoryOf = (reference: string): string => {
  const name = untagged(reference.replace(/^[a-z-]+:\/\//u, ""))
  const [host = "", ...path] = name.split("/")
  if (path.length === 0) return `docker.io/library/${name}`
  return /[.:]/u.test(host) || host === "localhost" ? name.replace(/^index\.docker\.io\//u, "docker.io/") : `docker.io/${name}`
}

/**
 * Which image it is that a container runs, `sha256:...`: by its own name where that says so, else by what the node tells (`imageID` of its status). Null where the node tells
 * none that the name could be asked for with: it was never pulled, or the node knows it from elsewhere.
 */
export const imageDigest = (image: string, imageId: string | undefined): string | null =>
  digestIn(image) ?? (imageId !== undefined && repositoryOf(imageId) === repositoryOf(image) ? digestIn(imageId) : null)

/** Whether the name stands for one image for ever. */
export const isPinned = (image: string): boolean => digestIn(image) !== null

/** The same image by its digest, where that is known. */
export const pinned = (image: string, digest: string | null): string => (digest === null || isPinned(image) ? image : `${untagged(image)}@${digest}`)
