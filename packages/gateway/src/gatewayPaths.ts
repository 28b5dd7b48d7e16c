import { isOtherPath, methodsOf } from "./otherPaths.ts"
import { pathOf } from "./pathOf.ts"
import { isEndpoint } from "./vocabulary/endpoints.ts"

/** Whether the path of a request is an inference path. */
export const isInferencePath = (url: string | undefined): boolean => isEndpoint(pathOf(url))

/** Whether the gateway handles a path. If gateway and API share an address, the API handles all other paths. */
export const isGatewayPath = (url: string | undefined, method = "GET"): boolean => isInferencePath(url) || isOtherPath(pathOf(url), method)

/** Methods of the inference paths. */
export const inferenceMethods = "OPTIONS, POST"

/** Methods of the index. */
const indexMethods = "GET, HEAD, OPTIONS"

/** The methods of a path without inference; null if the path does not exist. */
export const otherMethodsAt = (path: string): string | null => (path === "/" ? indexMethods : methodsOf(path))

/** The methods of a path; null if the path does not exist. */
export const methodsAt = (path: string): string | null => (isEndpoint(path) ? inferenceMethods : otherMethodsAt(path))
