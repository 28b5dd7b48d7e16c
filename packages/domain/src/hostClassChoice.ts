import { anyHostClass, type ServingRequest } from "./serving.ts"

type Choice = Pick<ServingRequest, "host_class">

/** The names that a request allows, in order of preference; null if it allows every class. */
export const classOrder = ({ host_class: choice }: Choice): ReadonlyArray<string> | null =>
  choice === undefined || choice === anyHostClass ? null : typeof choice === "string" ? [choice] : choice

/**
 * Whether a run may be placed on one of several classes: the request lists several, or says `any`. Without a class the
 * fit chooses one, for good.
 */
export const isClassChoice = ({ host_class: choice }: Choice): boolean =>
  choice === anyHostClass || (choice !== undefined && typeof choice !== "string" && choice.length > 1)

/** The request as it is compared and stored: a list of one class is that class. */
export const normalizedClass = <A extends Choice>(request: A): A => {
  const { host_class: choice } = request
  if (choice === undefined || typeof choice === "string") return request
  const [only, ...more] = choice
  return only === undefined || more.length > 0 ? request : { ...request, host_class: only }
}

/** Class names for a message: `a`, `a or b`, `a, b or c`. */
export const classesInWords = (names: ReadonlyArray<string>): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`
