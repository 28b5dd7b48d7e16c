/** The part of `repo@sha256:...` after the `@`. */
const digestIn = (reference: string): string | null => /@([a-z0-9]+:[0-9a-f]{32,})$/u.exec(reference)?.[1] ?? null

const untagged = (reference: string): string => reference.replace(/@[^@]*$/u, "").replace(/:[^/:]*$/u, "")

/** The full name of an image, without tag and digest: `vllm/vllm-openai:v1` is in `docker.io/vllm/vllm-openai`. */
const repositoryOf = (reference: string): string => {
  const name = untagged(reference.replace(/^[a-z-]+:\/\//u, ""))
  const [host = "", ...path] = name.split("/")
  if (path.length === 0) return `docker.io/library/${name}`
  return /[.:]/u.test(host) || host === "localhost" ? name.replace(/^index\.docker\.io\//u, "docker.io/") : `docker.io/${name}`
}

/**
 * The digest (`sha256:...`) of the image that a container runs: from its own name if that contains one, else from the
 * `imageID` in its status. Null if the node reports no digest for that repository: the image was never pulled, or has
 * another origin.
 */
export const imageDigest = (image: string, imageId: string | undefined): string | null =>
  digestIn(image) ?? (imageId !== undefined && repositoryOf(imageId) === repositoryOf(image) ? digestIn(imageId) : null)

/** Whether the name always refers to the same image. */
export const isPinned = (image: string): boolean => digestIn(image) !== null

/** The same image by its digest, if the digest is recorded. */
export const pinned = (image: string, digest: string | null): string => (digest === null || isPinned(image) ? image : `${untagged(image)}@${digest}`)

/** The tag of the image; null if it has none. */
export const tagOf = (image: string): string | null => /:([^/:]+)$/u.exec(image.replace(/@[^@]*$/u, ""))?.[1] ?? null
