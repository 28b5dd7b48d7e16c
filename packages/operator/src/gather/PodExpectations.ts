import { EngineMap } from "../RunStore.ts"

/**
 * Created pods that no watch has shown yet, by name, with their resource version; undefined if a pass has missed the
 * pod since.
 */
export class PodExpectations extends EngineMap<string | undefined> {}
