import { modelCapabilities, nothingServed } from "@seatrial/domain"
import type { ServingPlan } from "@seatrial/store"
import type { ClassOption } from "../src/observation/Observation.ts"
import { podClass, revision } from "./observations.ts"

/** The run's plan on a host class of that name, with this many GPUs for each engine. */
export const planOn = (name: string, gpus = 1): ServingPlan => ({
  settings: { ...revision.settings, host_class: name },
  engineVersion: revision.engineVersion,
  engineImage: "reference:1",
  estimate: { ...revision.estimate, host_class: name, gpu_count: gpus },
  capabilities: modelCapabilities({ ...nothingServed, paths: {} }, revision.facts)
})

/** That host class, with its own nodes. */
export const classNamed = (name: string, gpus = 1) => ({
  ...podClass,
  nodeSelector: { class: name },
  hostClass: { ...podClass.hostClass, name, gpu_count: gpus }
})

/** A host class with 8 GPUs, all in use, on which the run may be placed. */
export const optionOn = (name: string, view: Partial<ClassOption> = {}, gpus = 1): ClassOption => ({
  plan: planOn(name, gpus),
  podClass: classNamed(name, gpus),
  freeSlots: 0,
  ahead: 0,
  requestedEngines: 0,
  classGpus: 8,
  nodeGpus: 8,
  freeGpus: 0,
  setAside: false,
  shortage: null,
  ...view
})
