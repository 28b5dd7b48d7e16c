/** A phase as a Kubernetes reason: `booting` becomes `Booting`. */
export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** A code as a Kubernetes reason: `image_unavailable` becomes `ImageUnavailable`. */
export const camelCase = (code: string): string => code.split("_").map(capitalized).join("")
