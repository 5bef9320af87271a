// A stand-in for OpenCGA's own image, for tests: its tool by its commands, its REST server and its daemon by what they
// answer. The catalog is in another process, over the network, so that order and loss show: `database` is that.
//
//	opencga-admin.sh server rest --start      opencga-admin.sh catalog status
//	opencga-admin.sh catalog daemon --start   opencga-admin.sh catalog install --email E
//	database [ADDRESS]                        opencga-admin.sh migration search
//	opencga.sh users login -u NAME            opencga-admin.sh migration run [--offline]
//	opencga.sh studies search | meta about
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if err := called(filepath.Base(os.Args[0]), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ERROR:", err)
		os.Exit(1)
	}
}

func called(name string, args []string) error {
	if name == "database" {
		address := ":27017"
		if len(args) > 0 {
			address = args[0]
		}
		return keep(address)
	}
	if name == "opencga.sh" {
		return command(args)
	}
	conf, err := configured()
	if err != nil {
		return err
	}
	switch words := strings.Join(args, " "); {
	case words == "server rest --start":
		return serveREST(conf)
	case words == "catalog daemon --start":
		return serveDaemon(conf)
	case words == "catalog status":
		return status(conf)
	case strings.HasPrefix(words, "catalog install --email "):
		return install(conf)
	case words == "migration search":
		return search(conf)
	case words == "migration run", words == "migration run --offline":
		return migrate(conf, strings.HasSuffix(words, "--offline"))
	default:
		return fmt.Errorf("%q is no command of this stand-in", words)
	}
}

// version is that of the image.
func version() string {
	text, err := os.ReadFile(filepath.Join(os.Getenv("OPENCGA_HOME"), "VERSION"))
	if err != nil {
		return "0.0.0"
	}
	return strings.TrimSpace(string(text))
}

// configuration is as much of configuration.yml as is read here. It is JSON, which is YAML, as agents write it.
type configuration struct {
	DatabasePrefix string `json:"databasePrefix"`
	Catalog        struct {
		Database struct {
			Hosts    []string `json:"hosts"`
			User     string   `json:"user"`
			Password string   `json:"password"`
		} `json:"database"`
	} `json:"catalog"`
	Server struct {
		Rest struct {
			Port int `json:"port"`
		} `json:"rest"`
	} `json:"server"`
	Monitor struct {
		Port int `json:"port"`
	} `json:"monitor"`
}

func configured() (*configuration, error) {
	path := filepath.Join(os.Getenv("OPENCGA_HOME"), "conf", "configuration.yml")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var conf configuration
	if err := json.Unmarshal(text, &conf); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(conf.Catalog.Database.Hosts) == 0 {
		return nil, fmt.Errorf("%s: catalog.database.hosts is empty", path)
	}
	return &conf, nil
}

// password is the first line of the standard input, as the product asks for it.
func password() (string, error) {
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("no password on the standard input: %w", err)
	}
	return strings.TrimRight(line, "\n"), nil
}

func status(conf *configuration) error {
	told := map[string]any{"mongodbStatus": false, "installed": false, "databasePrefix": conf.DatabasePrefix}
	if found, err := conf.look(); err == nil {
		told["mongodbStatus"], told["installed"] = true, found.Installed
	}
	fmt.Println("INFO: how the catalog is")
	return json.NewEncoder(os.Stdout).Encode(told)
}

func install(conf *configuration) error {
	word, err := password()
	if err != nil {
		return err
	}
	return conf.ask("/install", map[string]string{"password": word}, nil)
}

// search tells the one migration to this version, if the catalog is of an earlier one.
func search(conf *configuration) error {
	if _, err := password(); err != nil {
		return err
	}
	found, err := conf.look()
	if err != nil {
		return err
	}
	status := "DONE"
	if number(version()) > number(found.Version) {
		status = "PENDING"
	}
	fmt.Println("12:00 [main] INFO: what is to be applied")
	return json.NewEncoder(os.Stdout).Encode([]any{map[string]any{
		"id": "to-" + version(), "version": version(), "status": status, "manual": false, "offline": found.Offline != "",
	}})
}

func migrate(conf *configuration, offline bool) error {
	word, err := password()
	if err != nil {
		return err
	}
	words := map[string]string{"password": word, "version": version()}
	if offline {
		words["offline"] = "yes"
	}
	if err := conf.ask("/migrate/begin", words, nil); err != nil {
		return err
	}
	time.Sleep(time.Second) // it takes a while, in which the catalog is half of either version
	return conf.ask("/migrate/end", words, nil)
}
