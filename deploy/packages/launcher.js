#!/usr/bin/env node
// Starts the binary of the package for this platform.
const { spawnSync } = require("node:child_process");

const { name } = require("./package.json");
const platform = `${process.platform}-${process.arch}`;
let binary;
try {
	binary = require.resolve(`${name}-${platform}/cairn${process.platform === "win32" ? ".exe" : ""}`);
} catch {
	console.error(`cairn: ${name}-${platform} is not installed: there is no binary for this platform, or npm left out optional dependencies`);
	process.exit(1);
}
const { status, error } = spawnSync(binary, process.argv.slice(2), { stdio: "inherit" });
if (error) {
	console.error(`cairn: ${error.message}`);
}
process.exit(status ?? 1);
