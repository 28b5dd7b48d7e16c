export { Cursors, type ListIdentity } from "./Cursors.ts"
export { defaultClientTimeouts, makeNodeServer } from "./nodeServer.ts"
export { layerRoutes, makeApp, makeRequestListener } from "./Server.ts"
export * from "./ServerSettings.ts"
